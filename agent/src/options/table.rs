//! The table of all options of dynamic mode (spec 4 section 4.1).

use super::rule::Rule;

/// Name of the option for the output directory.
pub const OUTPUT: &str = "output";
/// Name of the option that has no key of its own on the stock wire.
pub const MODEL_EXECUTION: &str = "model-execution";

/// What an option is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Where and how much is written.
    Output,
    /// A trace that this agent writes.
    Trace,
    /// A switch that is handed on to the components.
    Component,
    /// Handed on; its data come from collectors that this agent does not have.
    PassedThrough,
    /// Known, but not together with `--dynamic`.
    Refused,
}

/// How a value becomes the value of a key in the params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The text as it is.
    Text,
    /// This text, whatever the value.
    Fixed(&'static str),
    /// The number.
    Number,
    /// A frequency in Hz as an interval; the number is how many units make a second.
    Interval(u32),
    /// `on` when the comma-separated value holds this word.
    Holds(&'static str),
}

/// A key of the params and how an option sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Name in the params.
    pub name: &'static str,
    /// How the value is written.
    pub form: Form,
}

/// One option.
#[derive(Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// Name without dashes.
    pub name: &'static str,
    /// What it is about.
    pub group: Group,
    /// What values it takes.
    pub rule: Rule,
    /// Value when it is not given; empty when there is none.
    pub default: &'static str,
    /// Keys of the params that it sets when it is given.
    pub keys: &'static [Key],
    /// One line of help.
    pub help: &'static str,
}

const fn text(name: &'static str) -> Key {
    key(name, Form::Text)
}

const fn key(name: &'static str, form: Form) -> Key {
    Key { name, form }
}

const fn spec(
    group: Group,
    name: &'static str,
    rule: Rule,
    default: &'static str,
    keys: &'static [Key],
    help: &'static str,
) -> OptionSpec {
    OptionSpec {
        name,
        group,
        rule,
        default,
        keys,
        help,
    }
}

const fn hz(max: u32) -> Rule {
    Rule::Number { min: 1, max }
}

const MS: Form = Form::Interval(1_000);
const US: Form = Form::Interval(1_000_000);
const MODES: Rule = Rule::OneOf(&["task-based", "sample-based"]);
const METRICS: Rule = Rule::Metrics(&[
    "PipeUtilization",
    "PipeUtilizationExct",
    "ArithmeticUtilization",
    "Memory",
    "MemoryL0",
    "MemoryUB",
    "MemoryAccess",
    "L2Cache",
    "ResourceConflictRatio",
    "PipelineExecuteUtilization",
]);

use Group::{Component, Output, PassedThrough, Refused, Trace};
use Rule::{OnOff, OneOf, SomeOf};

/// Every option, in the order of the help.
#[rustfmt::skip]
pub static TABLE: &[OptionSpec] = &[
    spec(Output, OUTPUT, Rule::Path, ".", &[text("result_dir")],
        "directory that PROF_XXX directories are made in; made with its parents"),
    spec(Output, "storage-limit", Rule::StorageLimit, "", &[text("storageLimit")],
        "bound on the size of one PROF_XXX: the oldest records that may age are deleted, and counted; \
         without it nothing is deleted"),

    spec(Trace, "runtime-api", OnOff, "off", &[text("runtimeApi")],
        "calls of the runtime API"),
    spec(Trace, MODEL_EXECUTION, OnOff, "off", &[],
        "executions of models by the graph engine"),
    spec(Trace, "aicpu", OnOff, "off", &[text("aicpuTrace")],
        "operators on the AI CPU"),
    spec(Trace, "ascendcl", OnOff, "on", &[text("acl")],
        "calls of the acl API"),

    spec(Component, "task-time", OneOf(&["on", "off", "l0", "l1", "l2", "l3"]), "on",
        &[text("taskTime"), key("taskTrace", Form::Fixed("on")), text("prof_level")],
        "level of detail of tasks and operators; on means l1"),
    spec(Component, "ge-api", OneOf(&["off", "l0", "l1"]), "off", &[text("geApi")],
        "host work of the graph engine"),
    spec(Component, "hccl", OnOff, "off", &[text("hcclTrace")],
        "collective communication"),
    spec(Component, "task-memory", OnOff, "off", &[text("taskMemory")],
        "memory use of operators"),
    spec(Component, "task-tsfw", OnOff, "off", &[text("taskTsfw")],
        "firmware of the task scheduler"),
    spec(Component, "l2", OnOff, "off", &[text("l2CacheTaskProfiling")],
        "level 2 cache per task"),
    spec(Component, "instr-profiling", OnOff, "off", &[text("instrProfiling")],
        "instructions of AI cores"),
    spec(Component, "msproftx", OnOff, "off", &[text("msproftx")],
        "marks and ranges that the program sets"),

    spec(PassedThrough, "ai-core", OnOff, "on", &[text("ai_core_profiling")],
        "performance counters of AI cores"),
    spec(PassedThrough, "aic-mode", MODES, "task-based", &[text("ai_core_profiling_mode")],
        "when AI core counters are read"),
    spec(PassedThrough, "aic-freq", hz(100), "100", &[key("aicore_sampling_interval", MS)],
        "sampling of AI cores, Hz"),
    spec(PassedThrough, "aic-metrics", METRICS, "", &[text("ai_core_metrics")],
        "which AI core counters"),
    spec(PassedThrough, "ai-vector-core", OnOff, "on", &[text("aiv_profiling")],
        "performance counters of AI vector cores"),
    spec(PassedThrough, "aiv-mode", MODES, "task-based", &[text("aiv_profiling_mode")],
        "when AI vector core counters are read"),
    spec(PassedThrough, "aiv-freq", hz(100), "100", &[key("aiv_sampling_interval", MS)],
        "sampling of AI vector cores, Hz"),
    spec(PassedThrough, "aiv-metrics", METRICS, "PipeUtilization", &[text("aiv_metrics")],
        "which AI vector core counters"),
    spec(PassedThrough, "aicore-shape", OnOff, "off", &[text("aicoreShape")],
        "shapes of AI core operators"),
    spec(PassedThrough, "aic-scale", OneOf(&["all", "partial"]), "all", &[text("aicScale")],
        "which AI cores"),
    spec(PassedThrough, "task-block", OneOf(&["on", "off", "all"]), "off", &[text("taskBlock")],
        "blocks of tasks"),
    spec(PassedThrough, "instr-profiling-freq", Rule::Number { min: 300, max: 30_000 }, "1000",
        &[key("instrProfilingFreq", Form::Number)],
        "cycles between two instruction samples"),
    spec(PassedThrough, "sys-hardware-mem", OnOff, "off", &[text("hardware_mem")],
        "bandwidth of device memory"),
    spec(PassedThrough, "sys-hardware-mem-freq", hz(100), "50",
        &[key("hardware_mem_sampling_interval", US)],
        "sampling of device memory, Hz"),
    spec(PassedThrough, "llc-profiling", OneOf(&["read", "write"]), "read",
        &[text("msprof_llc_profiling")],
        "which traffic of the last level cache"),
    spec(PassedThrough, "sys-profiling", OnOff, "off", &[text("sys_profiling")],
        "CPU and memory of the device's system"),
    spec(PassedThrough, "sys-sampling-freq", hz(10), "10", &[key("sys_sampling_interval", MS)],
        "sampling of the device's system, Hz"),
    spec(PassedThrough, "sys-pid-profiling", OnOff, "off", &[text("pid_profiling")],
        "CPU and memory of the device's processes"),
    spec(PassedThrough, "sys-pid-sampling-freq", hz(10), "10",
        &[key("pid_sampling_interval", MS)],
        "sampling of the device's processes, Hz"),
    spec(PassedThrough, "sys-cpu-freq", hz(50), "50", &[key("cpu_sampling_interval", MS)],
        "sampling of the device's CPUs, Hz"),
    spec(PassedThrough, "sys-io-profiling", OnOff, "off", &[text("io_profiling")],
        "network devices"),
    spec(PassedThrough, "sys-io-sampling-freq", hz(100), "100",
        &[key("io_sampling_interval", MS)],
        "sampling of network devices, Hz"),
    spec(PassedThrough, "sys-interconnection-profiling", OnOff, "off",
        &[text("interconnection_profiling")],
        "links between devices and to the host"),
    spec(PassedThrough, "sys-interconnection-freq", hz(50), "50",
        &[key("interconnection_sampling_interval", MS)],
        "sampling of links, Hz"),
    spec(PassedThrough, "sys-mem-serviceflow", Rule::Text, "", &[text("memServiceflow")],
        "memory traffic of named service flows"),
    spec(PassedThrough, "dvpp-profiling", OnOff, "off", &[text("dvpp_profiling")],
        "image preprocessing units"),
    spec(PassedThrough, "dvpp-freq", hz(100), "50", &[key("dvpp_sampling_interval", MS)],
        "sampling of image preprocessing units, Hz"),
    spec(PassedThrough, "host-sys", SomeOf(&["cpu", "mem", "disk", "network", "osrt"]), "",
        &[
            text("host_sys"),
            key("host_cpu_profiling", Form::Holds("cpu")),
            key("host_mem_profiling", Form::Holds("mem")),
            key("host_disk_profiling", Form::Holds("disk")),
            key("host_network_profiling", Form::Holds("network")),
            key("host_osrt_profiling", Form::Holds("osrt")),
        ],
        "use of the host by the process"),
    spec(PassedThrough, "host-sys-pid", Rule::Number { min: 1, max: i32::MAX as u32 }, "",
        &[key("host_sys_pid", Form::Number)],
        "the process whose use of the host is meant"),
    spec(PassedThrough, "host-sys-usage", SomeOf(&["cpu", "mem"]), "",
        &[
            text("hostSysUsage"),
            key("hostAllPidCpuProfiling", Form::Holds("cpu")),
            key("hostAllPidMemProfiling", Form::Holds("mem")),
        ],
        "use of the host by all processes"),
    spec(PassedThrough, "host-sys-usage-freq", hz(50), "50",
        &[key("hostProfilingSamplingInterval", MS)],
        "sampling of the host, Hz"),
    spec(PassedThrough, "mstx-domain-include", Rule::Text, "", &[text("mstxDomainInclude")],
        "only marks of these domains, comma-separated"),
    spec(PassedThrough, "mstx-domain-exclude", Rule::Text, "", &[text("mstxDomainExclude")],
        "no marks of these domains, comma-separated"),

    spec(Refused, "sys-period", Rule::Number { min: 1, max: 30 * 24 * 3600 }, "", &[],
        "not in dynamic mode"),
    spec(Refused, "sys-devices", Rule::Text, "", &[], "not in dynamic mode"),
    spec(Refused, "sys-cpu-profiling", OnOff, "", &[], "not in dynamic mode"),
    spec(Refused, "delay", Rule::Text, "", &[], "not in dynamic mode"),
    spec(Refused, "duration", Rule::Text, "", &[], "not in dynamic mode"),
];
