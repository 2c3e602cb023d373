//! What the params ask for: the switch words for components and the traces to write.

use super::Params;
use crate::records::Trace;

/// Bits of [`Switches::switch`] (spec 2, "Switch bits").
pub mod bit {
    #![allow(missing_docs)]
    pub const ACL_API: u64 = 0x1;
    pub const TASK_TIME_L1: u64 = 0x2;
    pub const AI_CORE_METRICS: u64 = 0x4;
    pub const AICPU: u64 = 0x8;
    pub const L2_CACHE: u64 = 0x10;
    pub const HCCL: u64 = 0x20;
    pub const TRAINING_TRACE: u64 = 0x40;
    pub const RUNTIME_API: u64 = 0x100;
    pub const GE_API_L0: u64 = 0x200;
    pub const TASK_TSFW: u64 = 0x400;
    pub const TASK_TIME_L0: u64 = 0x800;
    pub const TASK_MEMORY: u64 = 0x1000;
    pub const TASK_TIME_L2: u64 = 0x2000;
    pub const INSTRUCTIONS: u64 = 0x80_0000;
    pub const MODEL_EXECUTION: u64 = 0x100_0000;
    pub const RUNTIME_TRACE: u64 = 0x400_0000;
    pub const AI_VECTOR_METRICS: u64 = 0x2000_0000;
    pub const OP_DETAIL: u64 = 0x8000_0000;
    pub const AICPU_MODEL: u64 = 1 << 62;
    pub const MODEL_LOAD: u64 = 1 << 63;
    /// In [`super::Switches::switch_hi`].
    pub const HI_AICPU_CHANNEL: u64 = 1 << 48;
}

/// Set whatever the options: the stock server sends them even with `--ai-core=off --task-time=off`.
const ALWAYS: u64 = bit::AI_CORE_METRICS
    | bit::TRAINING_TRACE
    | bit::AI_VECTOR_METRICS
    | bit::OP_DETAIL
    | bit::AICPU_MODEL
    | bit::MODEL_LOAD;

/// The two switch words of a component command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Bits of [`bit`].
    pub switch: u64,
    /// The second word.
    pub switch_hi: u64,
}

/// Level of detail of tasks and operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskLevel {
    /// Nothing on tasks.
    Off,
    /// `l0`.
    L0,
    /// `l1`, also what `on` means.
    L1,
    /// `l2`.
    L2,
    /// `l3`; no switch bit tells it from `l2`.
    L3,
}

impl TaskLevel {
    /// As components read it in `prof_level`.
    pub fn long_name(self) -> &'static str {
        match self {
            TaskLevel::Off => "off",
            TaskLevel::L0 => "level0",
            TaskLevel::L1 => "level1",
            TaskLevel::L2 => "level2",
            TaskLevel::L3 => "level3",
        }
    }

    /// As the parser reads it in `profLevel`.
    pub fn short_name(self) -> &'static str {
        match self {
            TaskLevel::Off => "off",
            TaskLevel::L0 => "l0",
            TaskLevel::L1 => "l1",
            TaskLevel::L2 => "l2",
            TaskLevel::L3 => "l3",
        }
    }

    fn bits(self) -> u64 {
        match self {
            TaskLevel::Off => 0,
            TaskLevel::L0 => bit::TASK_TIME_L0 | bit::RUNTIME_TRACE,
            TaskLevel::L1 => TaskLevel::L0.bits() | bit::TASK_TIME_L1,
            TaskLevel::L2 | TaskLevel::L3 => TaskLevel::L1.bits() | bit::TASK_TIME_L2,
        }
    }
}

/// Which traces are written: a set over [`Trace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection(u8);

impl Selection {
    /// The set with one more trace.
    #[must_use]
    pub const fn with(self, trace: Trace) -> Selection {
        Selection(self.0 | 1 << trace as u8)
    }

    /// Whether records of this trace are written.
    #[inline]
    pub const fn contains(self, trace: Trace) -> bool {
        self.0 & 1 << trace as u8 != 0
    }

    /// The set as bits, bit n for the trace with number n.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl Params {
    /// Level of detail of tasks (spec 1 section 1.4): `prof_level` off with both `taskTime` and
    /// `taskTrace` on counts as on, and on means l1.
    pub fn task_level(&self) -> TaskLevel {
        match self.text("prof_level") {
            "l0" | "level0" => TaskLevel::L0,
            "on" | "l1" | "level1" => TaskLevel::L1,
            "l2" | "level2" => TaskLevel::L2,
            "l3" | "level3" => TaskLevel::L3,
            _ if self.is_on("taskTime") && self.is_on("taskTrace") => TaskLevel::L1,
            _ => TaskLevel::Off,
        }
    }

    /// The switch words that components are commanded with.
    pub fn switches(&self) -> Switches {
        const BY_KEY: [(&str, u64); 8] = [
            ("acl", bit::ACL_API),
            ("aicpuTrace", bit::AICPU),
            ("l2CacheTaskProfiling", bit::L2_CACHE),
            ("hcclTrace", bit::HCCL),
            ("runtimeApi", bit::RUNTIME_API),
            ("taskTsfw", bit::TASK_TSFW),
            ("taskMemory", bit::TASK_MEMORY),
            ("instrProfiling", bit::INSTRUCTIONS),
        ];
        let level = self.task_level();
        let mut switch = ALWAYS | level.bits();
        for (key, bit) in BY_KEY {
            if self.is_on(key) {
                switch |= bit;
            }
        }
        switch |= match self.text("geApi") {
            "l0" => bit::GE_API_L0,
            "l1" => bit::GE_API_L0 | bit::MODEL_EXECUTION,
            _ => 0,
        };
        if self.announcement().is_some_and(|a| a.model_execution) {
            switch |= bit::MODEL_EXECUTION;
        }
        let switch_hi = match level {
            TaskLevel::Off => 0,
            _ => bit::HI_AICPU_CHANNEL,
        };
        Switches { switch, switch_hi }
    }

    /// The traces to write.
    ///
    /// A stock client cannot say `--model-execution`: for it model records are written whenever
    /// anything asks components for them.
    pub fn selection(&self) -> Selection {
        const MODEL_BITS: u64 = bit::TASK_TIME_L1
            | bit::TASK_TIME_L0
            | bit::TASK_TIME_L2
            | bit::GE_API_L0
            | bit::MODEL_EXECUTION;
        let ge_api = matches!(self.text("geApi"), "l0" | "l1");
        let model = match self.announcement() {
            Some(announcement) => announcement.model_execution || ge_api,
            None => self.switches().switch & MODEL_BITS != 0,
        };
        let wanted = [
            (Trace::RuntimeApi, self.is_on("runtimeApi")),
            (Trace::ModelExecution, model),
            (Trace::Aicpu, self.is_on("aicpuTrace")),
            (Trace::Acl, self.is_on("acl")),
            (Trace::Task, true),
        ];
        let chosen = wanted.into_iter().filter(|(_, on)| *on);
        chosen.fold(Selection::default(), |set, (trace, _)| set.with(trace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    /// Client options and the words that a stock server then sent to components (seen).
    #[rustfmt::skip]
    const SEEN: &[(&str, u64, u64)] = &[
        ("", 0xc0000000a4000847, 0x1000000000000),
        ("--ascendcl=off", 0xc0000000a4000846, 0x1000000000000),
        ("--runtime-api=on", 0xc0000000a4000947, 0x1000000000000),
        ("--model-execution=on", 0xc0000000a4000847, 0x1000000000000),
        ("--aicpu=on", 0xc0000000a400084f, 0x1000000000000),
        ("--task-time=off", 0xc0000000a0000045, 0x0),
        ("--task-time=l0", 0xc0000000a4000845, 0x1000000000000),
        ("--task-time=l1", 0xc0000000a4000847, 0x1000000000000),
        ("--task-time=l2", 0xc0000000a4002847, 0x1000000000000),
        ("--ge-api=l0", 0xc0000000a4000a47, 0x1000000000000),
        ("--ge-api=l1", 0xc0000000a5000a47, 0x1000000000000),
        ("--hccl=on", 0xc0000000a4000867, 0x1000000000000),
        ("--msproftx=on", 0xc0000000a4000847, 0x1000000000000),
        ("--task-memory=on", 0xc0000000a4001847, 0x1000000000000),
        ("--task-tsfw=on", 0xc0000000a4000c47, 0x1000000000000),
        ("--l2=on", 0xc0000000a4000857, 0x1000000000000),
        ("--ai-core=off", 0xc0000000a4000847, 0x1000000000000),
        ("--aic-metrics=Memory", 0xc0000000a4000847, 0x1000000000000),
        ("--instr-profiling=on", 0xc0000000a4800847, 0x1000000000000),
        ("--sys-hardware-mem=on", 0xc0000000a4000847, 0x1000000000000),
        ("--sys-profiling=on", 0xc0000000a4000847, 0x1000000000000),
        ("--sys-io-profiling=on", 0xc0000000a4000847, 0x1000000000000),
        ("--sys-interconnection-profiling=on", 0xc0000000a4000847, 0x1000000000000),
        ("--dvpp-profiling=on", 0xc0000000a4000847, 0x1000000000000),
        ("--host-sys=cpu,mem", 0xc0000000a4000847, 0x1000000000000),
        ("--aicore-shape=on --task-time=l0", 0xc0000000a4000845, 0x1000000000000),
        ("--ascendcl=off --ai-core=off --task-time=off", 0xc0000000a0000044, 0x0),
        ("--runtime-api=on --model-execution=on --aicpu=on --ge-api=l1 --task-time=l1 --hccl=on --msproftx=on", 0xc0000000a5000b6f, 0x1000000000000),
    ];

    fn params(options: &str) -> Params {
        let options = Options::parse_words(options.split_whitespace()).expect("valid options");
        Params::from_options(&options, 1)
    }

    #[test]
    fn every_seen_combination_of_options_gives_the_seen_switch_words() {
        for &(options, switch, switch_hi) in SEEN {
            let ours = if options.contains("--model-execution=on") {
                bit::MODEL_EXECUTION
            } else {
                0
            };
            let got = params(options).switches();
            let expected = Switches {
                switch: switch | ours,
                switch_hi,
            };
            assert_eq!(got, expected, "{options}: {:#x}", got.switch);
        }
    }

    #[test]
    fn a_stock_client_gets_the_seen_switch_words() {
        for &(options, switch, switch_hi) in SEEN {
            let mut stock = params(options);
            stock.remove_announcement();
            assert_eq!(
                stock.switches(),
                Switches { switch, switch_hi },
                "{options}"
            );
        }
    }

    #[test]
    fn traces_are_selected_by_their_options() {
        let names = |options: &str| -> Vec<&str> {
            let set = params(options).selection();
            let on = Trace::ALL.into_iter().filter(|t| set.contains(*t));
            on.map(Trace::name).collect()
        };
        assert_eq!(names(""), ["acl", "task"]);
        assert_eq!(names("--ascendcl=off"), ["task"]);
        assert_eq!(names("--runtime-api=on"), ["runtime-api", "acl", "task"]);
        assert_eq!(
            names("--runtime-api=on --model-execution=on --aicpu=on"),
            ["runtime-api", "model-execution", "aicpu", "acl", "task"]
        );
        for ge_api in ["--ge-api=l0", "--ge-api=l1"] {
            assert_eq!(names(ge_api), ["model-execution", "acl", "task"]);
        }
    }

    #[test]
    fn a_stock_client_gets_model_records_with_any_task_level() {
        let model = |options: &str| {
            let mut stock = params(options);
            stock.remove_announcement();
            stock.selection().contains(Trace::ModelExecution)
        };
        assert!(model("") && model("--task-time=l0"));
        assert!(!model("--task-time=off"));
        assert!(model("--task-time=off --ge-api=l0"));
    }

    #[test]
    fn bits_of_a_selection_are_trace_numbers() {
        let set = Selection::default()
            .with(Trace::RuntimeApi)
            .with(Trace::Task);
        assert_eq!(set.bits(), 0b1_0001);
    }

    #[test]
    fn missing_keys_are_off() {
        let empty = Params::parse("{}").expect("empty object");
        assert_eq!(empty.task_level(), TaskLevel::Off);
        assert_eq!(empty.switches().switch, ALWAYS);
        assert_eq!(empty.selection(), Selection::default().with(Trace::Task));
    }
}
