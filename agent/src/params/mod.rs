//! The params of a session: the flat JSON object that a client sends first (spec 1 section 1.4).
//!
//! Every key may be missing and unknown keys are kept. Invariant: the keys that the agent acts on
//! have the right JSON type, or are missing.

#![forbid(unsafe_code)]

mod announcement;
mod defaults;
mod fill;
mod switches;

pub use announcement::{Announcement, PARAMS_KEY, PROTOCOL_VERSION};
pub use fill::{Fill, SampleFill};
pub use switches::{Selection, Switches, TaskLevel, bit};

use crate::options::table::{Form, MODEL_EXECUTION};
use crate::options::{Options, rule};
use serde_json::{Map, Value};

/// Longest text that is parsed, bytes. The wire holds less; the rest is room for other sources.
pub const TEXT_MAX: usize = 64 * 1024;
/// Longest text that is sent or handed to components, bytes (spec 1 section 1.2, spec 2 section 2.3).
pub const PARAMS_TEXT_MAX: usize = 4095;

/// Keys that are acted on and must be strings where they are present.
const STRINGS: [&str; 15] = [
    "result_dir",
    "storageLimit",
    "runtimeApi",
    "aicpuTrace",
    "geApi",
    "acl",
    "taskTime",
    "taskTrace",
    "prof_level",
    "hcclTrace",
    "taskMemory",
    "taskTsfw",
    "l2CacheTaskProfiling",
    "instrProfiling",
    "msproftx",
];

/// Why params are refused, or not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// Longer than [`TEXT_MAX`].
    #[error("params: {0} bytes of JSON, at most {TEXT_MAX} are read")]
    TooLong(usize),
    /// Longer than [`PARAMS_TEXT_MAX`].
    #[error(
        "params are {0} bytes of JSON, at most {PARAMS_TEXT_MAX} fit; use a shorter --output path"
    )]
    TooLongToSend(usize),
    /// Not a JSON object.
    #[error("params: not a JSON object: {0}")]
    Json(String),
    /// A key that matters has another type.
    #[error("params: key {key} must be a {expected}, but is {found}")]
    Type {
        /// The key.
        key: &'static str,
        /// The type that it must have.
        expected: &'static str,
        /// The type that it has.
        found: &'static str,
    },
    /// The storage limit cannot be read.
    #[error(
        "params: storageLimit \"{0}\" is invalid, valid range is {min}MB~{max}MB",
        min = rule::STORAGE_LIMIT_MIN_MB,
        max = u32::MAX
    )]
    StorageLimit(String),
    /// The output directory holds a NUL.
    #[error("params: result_dir holds a NUL character; use another --output path")]
    NulInPath,
}

/// The params of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    map: Map<String, Value>,
}

impl Params {
    /// Reads a JSON object.
    pub fn parse(text: &str) -> Result<Params, ParamsError> {
        if text.len() > TEXT_MAX {
            return Err(ParamsError::TooLong(text.len()));
        }
        // serde_json bounds the depth of nesting to 128.
        let map: Map<String, Value> =
            serde_json::from_str(text).map_err(|e| ParamsError::Json(e.to_string()))?;
        for key in STRINGS {
            match map.get(key) {
                None | Some(Value::String(_)) => {}
                Some(other) => {
                    return Err(ParamsError::Type {
                        key,
                        expected: "string",
                        found: type_name(other),
                    });
                }
            }
        }
        let params = Params { map };
        let limit = params.text("storageLimit");
        if !limit.is_empty() && rule::storage_limit_mb(limit).is_none() {
            return Err(ParamsError::StorageLimit(limit.chars().take(32).collect()));
        }
        if params.text("result_dir").contains('\0') {
            return Err(ParamsError::NulInPath);
        }
        Ok(params)
    }

    /// All keys with their defaults, the options applied, and the announcement of our controller.
    pub fn from_options(options: &Options, client_pid: u32) -> Params {
        let mut map = defaults::defaults();
        for (spec, value) in options.iter() {
            for key in spec.keys {
                map.insert(key.name.to_owned(), written(key.form, value));
            }
        }
        if options.given("output").is_none() {
            map.insert("result_dir".to_owned(), "".into());
        }
        if let Some(metrics) = options.given("aic-metrics") {
            apply_metrics(
                &mut map,
                "ai_core_metrics",
                "ai_core_profiling_events",
                metrics,
            );
        }
        if let Some(metrics) = options.given("aiv-metrics") {
            apply_metrics(&mut map, "aiv_metrics", "aiv_profiling_events", metrics);
        }
        map.insert("msprofBinPid".to_owned(), client_pid.into());
        let mut params = Params { map };
        params.announce(&Announcement {
            version: PROTOCOL_VERSION,
            model_execution: options.is_on(MODEL_EXECUTION),
            rescue: true,
            ..Announcement::default()
        });
        params
    }

    /// The params of a controller that only looks; `account` asks for the state of the captures as well.
    pub fn of_look(client_pid: u32, account: bool) -> Params {
        let mut params = Params::from_options(&Options::default(), client_pid);
        params.announce(&Announcement {
            version: PROTOCOL_VERSION,
            look: true,
            account,
            ..Announcement::default()
        });
        params
    }

    /// The text for a params message; fails when it does not fit.
    pub fn to_wire_text(&self) -> Result<String, ParamsError> {
        let text = self.text_of_all();
        if text.len() > PARAMS_TEXT_MAX {
            return Err(ParamsError::TooLongToSend(text.len()));
        }
        Ok(text)
    }

    /// Where PROF_XXX is to be made; `None` when the client leaves it to the agent.
    pub fn result_dir(&self) -> Option<&str> {
        Some(self.text("result_dir")).filter(|dir| !dir.is_empty())
    }

    /// Sets where PROF_XXX is to be made; empty leaves it to the agent.
    pub fn set_result_dir(&mut self, dir: &str) {
        self.map.insert("result_dir".to_owned(), dir.into());
    }

    /// Bound on the size of one PROF_XXX, MB; `None` when there is none.
    pub fn storage_limit_mb(&self) -> Option<u32> {
        rule::storage_limit_mb(self.text("storageLimit"))
    }

    /// Process id of the client, as it says.
    pub fn client_pid(&self) -> Option<i64> {
        self.map.get("msprofBinPid").and_then(Value::as_i64)
    }

    /// Text of a key; empty when it is missing or no string.
    pub fn text(&self, key: &str) -> &str {
        self.map.get(key).and_then(Value::as_str).unwrap_or("")
    }

    /// Whether a switch is on; `""` counts as off.
    pub fn is_on(&self, key: &str) -> bool {
        self.text(key) == "on"
    }

    /// All of it as one line of JSON.
    fn text_of_all(&self) -> String {
        serde_json::to_string(&self.map).expect("a map with text keys is always JSON")
    }
}

/// A value of an option as the value of a key.
fn written(form: Form, value: &str) -> Value {
    match form {
        Form::Text => value.into(),
        Form::Fixed(text) => text.into(),
        Form::Number => rule::number(value).map_or(Value::Null, Value::from),
        // The rules of such options exclude 0.
        Form::Interval(per_second) => {
            rule::number(value).map_or(Value::Null, |hz| (per_second / hz.max(1)).into())
        }
        Form::Holds(word) => {
            let holds = value.split(',').any(|w| w == word);
            if holds { "on" } else { "off" }.into()
        }
    }
}

/// Event numbers belong to a metric: with another metric the default's are wrong. Which numbers a
/// named metric has depends on the chip; the components look them up when none are given.
fn apply_metrics(map: &mut Map<String, Value>, metrics_key: &str, events_key: &str, value: &str) {
    let default = defaults::defaults();
    if default.get(metrics_key).and_then(Value::as_str) == Some(value) {
        return;
    }
    let events = value.strip_prefix("Custom:").unwrap_or("");
    map.insert(events_key.to_owned(), events.into());
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(options: &str) -> Params {
        let options = Options::parse_words(options.split_whitespace()).expect("valid options");
        Params::from_options(&options, 4711)
    }

    #[test]
    fn the_default_params_are_complete_and_fit() {
        let text = params("--output=/home/user/output")
            .to_wire_text()
            .expect("fits");
        assert!(text.len() > 2900 && text.len() < 3200, "{}", text.len());
        let back = Params::parse(&text).expect("parses");
        assert_eq!(back.map.len(), 136, "135 keys and the announcement");
        assert_eq!(back.result_dir(), Some("/home/user/output"));
        assert_eq!(back.client_pid(), Some(4711));
        assert_eq!(back.storage_limit_mb(), None);
        assert!(back.is_on("acl") && !back.is_on("runtimeApi"));
        let announcement = back.announcement().expect("announced");
        assert_eq!(announcement.version, PROTOCOL_VERSION);
        assert!(!announcement.model_execution);
    }

    #[test]
    fn options_are_written_under_the_stock_keys() {
        let params = params(
            "--storage-limit=300MB --task-time=l0 --aic-freq=50 --sys-hardware-mem-freq=100 \
             --host-sys=cpu,disk --aic-metrics=Custom:0x49,0x8 --model-execution=on \
             --instr-profiling-freq=300",
        );
        assert_eq!(params.storage_limit_mb(), Some(300));
        for key in ["taskTime", "prof_level"] {
            assert_eq!(params.text(key), "l0", "{key}");
        }
        assert_eq!(params.text("taskTrace"), "on");
        assert_eq!(params.map["aicore_sampling_interval"], 20);
        assert_eq!(params.map["hardware_mem_sampling_interval"], 10_000);
        assert_eq!(params.map["instrProfilingFreq"], 300);
        assert!(params.is_on("host_cpu_profiling") && params.is_on("host_disk_profiling"));
        assert!(!params.is_on("host_mem_profiling"));
        assert_eq!(params.text("ai_core_profiling_events"), "0x49,0x8");
        assert!(params.announcement().expect("announced").model_execution);
    }

    #[test]
    fn every_key_of_the_option_table_is_a_known_key() {
        let known = defaults::defaults();
        for spec in crate::options::TABLE {
            for key in spec.keys {
                assert!(known.contains_key(key.name), "{}: {}", spec.name, key.name);
            }
        }
    }

    #[test]
    fn a_path_that_makes_the_text_too_long_is_refused_with_the_way_out() {
        let mut options = Options::default();
        options.set_output(&format!("/{}", "x".repeat(1500)));
        let error = Params::from_options(&options, 1)
            .to_wire_text()
            .expect_err("too long");
        assert!(error.to_string().contains("shorter --output"), "{error}");
    }

    #[test]
    fn texts_that_are_no_object_are_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(TEXT_MAX));
        for text in ["", "[]", "3", "{", "{}x", "null", &deep, &long] {
            assert!(Params::parse(text).is_err(), "{:.20}", text);
        }
    }

    #[test]
    fn unknown_keys_of_any_type_are_kept_and_known_ones_must_have_their_type() {
        let params = Params::parse("{\"later\":[1,{\"x\":null}],\"hostProfiling\":3}").expect("ok");
        assert!(params.text_of_all().contains("\"later\":[1,{\"x\":null}]"));
        for key in STRINGS {
            for wrong in ["1", "true", "null", "[]", "{}"] {
                let error = Params::parse(&format!("{{\"{key}\":{wrong}}}")).expect_err(key);
                assert!(error.to_string().contains(key), "{error}");
            }
        }
    }

    #[test]
    fn a_storage_limit_or_path_that_cannot_be_kept_is_refused() {
        for limit in ["100MB", "300", "xMB"] {
            let text = format!("{{\"storageLimit\":\"{limit}\"}}");
            assert!(matches!(
                Params::parse(&text),
                Err(ParamsError::StorageLimit(_))
            ));
        }
        let nul = "{\"result_dir\":\"/a\\u0000b\"}";
        assert_eq!(Params::parse(nul), Err(ParamsError::NulInPath));
        assert_eq!(
            Params::parse("{\"result_dir\":\"\"}")
                .expect("ok")
                .result_dir(),
            None
        );
    }
}
