//! The params as others read them: components at their start, the parser in sample.json.

use super::{PARAMS_TEXT_MAX, Params};
use serde_json::Value;

/// Keys that the stock server does not hand to components.
const NOT_FOR_COMPONENTS: [&str; 4] = ["memServiceflow", "ubProfiling", "ubInterval", "opType"];
/// Strings of sample.json without which the parser stops (spec 3 section 4.2).
const REQUIRED_IN_SAMPLE: [&str; 3] = ["ai_core_profiling_mode", "ai_core_metrics", "app"];

/// What the agent knows and the client does not, for [`Params::component_json`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill<'a> {
    /// The PROF_XXX directory, or the directory that it is made in.
    pub result_dir: &'a str,
    /// Open devices, comma-separated.
    pub devices: &'a str,
    /// Process id as the process sees it.
    pub host_sys_pid: u32,
    /// Job id; the stock server writes the device id.
    pub job_id: &'a str,
}

/// What one sample.json says, for [`Params::sample_json`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleFill<'a> {
    /// `"64"` in the host directory, else the device's number.
    pub devices: &'a str,
    /// Whether it lies in the host directory.
    pub host: bool,
    /// The directory that it lies in.
    pub result_dir: &'a str,
    /// Process id as the process sees it.
    pub pid: u32,
}

impl Params {
    /// The JSON that components receive at init and start (spec 2 section 2.3).
    ///
    /// At most [`PARAMS_TEXT_MAX`] bytes: if it were longer, keys with nothing in them go first,
    /// then everything that was not filled in here.
    pub fn component_json(&self, fill: &Fill<'_>) -> String {
        let mut params = self.clone();
        params.remove_announcement();
        for key in NOT_FOR_COMPONENTS {
            params.map.shift_remove(key);
        }
        let filled: [(&str, Value); 5] = [
            ("prof_level", self.task_level().long_name().into()),
            ("host_sys_pid", fill.host_sys_pid.into()),
            ("result_dir", fill.result_dir.into()),
            ("devices", fill.devices.into()),
            ("job_id", fill.job_id.into()),
        ];
        for (key, value) in filled.clone() {
            params.map.insert(key.to_owned(), value);
        }
        let text = params.text_of_all();
        if text.len() <= PARAMS_TEXT_MAX {
            return text;
        }
        params.map.retain(|_, value| value.as_str() != Some(""));
        let text = params.text_of_all();
        if text.len() <= PARAMS_TEXT_MAX {
            return text;
        }
        params.map = filled
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect();
        let text = params.text_of_all();
        if text.len() <= PARAMS_TEXT_MAX {
            return text;
        }
        "{}".to_owned()
    }

    /// The one line of sample.json (spec 3 section 4.2).
    pub fn sample_json(&self, fill: &SampleFill<'_>) -> String {
        let mut params = self.clone();
        params.remove_announcement();
        params.map.shift_remove("opType");
        let level = self.task_level();
        let filled: [(&str, Value); 12] = [
            ("hostProfiling", fill.host.into()),
            ("devices", fill.devices.into()),
            ("runtimeTrace", "on".into()),
            ("result_dir", fill.result_dir.into()),
            ("prof_level", level.long_name().into()),
            ("profLevel", level.short_name().into()),
            ("job_id", fill.devices.into()),
            ("ts_task_time", "".into()),
            ("llc_profiling", "read".into()),
            ("llc_profiling_events", "read".into()),
            ("msprofBinPid", self.client_pid().unwrap_or(-1).into()),
            ("host_sys_pid", fill.pid.into()),
        ];
        for (key, value) in filled {
            params.map.insert(key.to_owned(), value);
        }
        for key in REQUIRED_IN_SAMPLE {
            let value = params.map.entry(key).or_insert_with(|| "".into());
            if !value.is_string() {
                *value = "".into();
            }
        }
        params.text_of_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::params::PARAMS_KEY;
    use serde_json::Map;

    fn params(options: &str) -> Params {
        let options = Options::parse_words(options.split_whitespace()).expect("valid options");
        Params::from_options(&options, 9676)
    }

    fn map(json: &str) -> Map<String, Value> {
        serde_json::from_str(json).expect("JSON object")
    }

    #[test]
    fn components_get_what_the_stock_server_fills_in() {
        let fill = Fill {
            result_dir: "/out/PROF_1",
            devices: "0,1",
            host_sys_pid: 9649,
            job_id: "0",
        };
        let text = params("--runtime-api=on --task-time=l2").component_json(&fill);
        let json = map(&text);
        assert!(text.len() <= PARAMS_TEXT_MAX);
        assert_eq!(json["prof_level"], "level2");
        assert_eq!(json["host_sys_pid"], 9649);
        assert_eq!(json["result_dir"], "/out/PROF_1");
        assert_eq!(json["devices"], "0,1");
        assert_eq!(json["job_id"], "0");
        assert_eq!(json["runtimeApi"], "on");
        for absent in NOT_FOR_COMPONENTS.into_iter().chain([PARAMS_KEY]) {
            assert!(!json.contains_key(absent), "{absent}");
        }
        let off = map(&params("--task-time=off").component_json(&fill));
        assert_eq!(off["prof_level"], "off");
    }

    #[test]
    fn a_long_path_never_makes_the_text_for_components_too_long() {
        for length in [900, 1100, 2000, 3000, 4000, 5000] {
            let path = format!("/{}", "x".repeat(length));
            let fill = Fill {
                result_dir: &path,
                ..Fill::default()
            };
            let text = params("").component_json(&fill);
            assert!(text.len() <= PARAMS_TEXT_MAX, "{length}: {}", text.len());
            let json = map(&text);
            if length <= 3000 {
                assert_eq!(json["result_dir"].as_str(), Some(path.as_str()), "{length}");
            }
        }
    }

    #[test]
    fn sample_json_holds_what_the_parser_requires() {
        let host = SampleFill {
            devices: "64",
            host: true,
            result_dir: "/out/PROF/",
            pid: 9649,
        };
        let text = params("--runtime-api=on --aicpu=on").sample_json(&host);
        assert!(!text.contains('\n'));
        let json = map(&text);
        let expected: &[(&str, Value)] = &[
            ("hostProfiling", true.into()),
            ("devices", "64".into()),
            ("job_id", "64".into()),
            ("runtimeTrace", "on".into()),
            ("prof_level", "level1".into()),
            ("profLevel", "l1".into()),
            ("llc_profiling", "read".into()),
            ("llc_profiling_events", "read".into()),
            ("msprofBinPid", 9676.into()),
            ("host_sys_pid", 9649.into()),
            ("result_dir", "/out/PROF/".into()),
            ("ai_core_profiling_mode", "task-based".into()),
        ];
        for (key, value) in expected {
            assert_eq!(&json[*key], value, "{key}");
        }
        assert!(!json.contains_key(PARAMS_KEY) && !json.contains_key("opType"));
        let device = SampleFill {
            devices: "0",
            host: false,
            ..host
        };
        let json = map(&params("").sample_json(&device));
        assert_eq!(
            (&json["hostProfiling"], &json["devices"]),
            (&false.into(), &"0".into())
        );
    }

    #[test]
    fn sample_json_of_empty_params_has_the_required_strings() {
        let empty = Params::parse("{\"app\":3}").expect("object");
        let json = map(&empty.sample_json(&SampleFill {
            devices: "64",
            host: true,
            result_dir: "",
            pid: 1,
        }));
        for key in REQUIRED_IN_SAMPLE
            .into_iter()
            .chain(["llc_profiling", "devices"])
        {
            assert!(json[key].is_string(), "{key}");
        }
        assert_eq!(json["msprofBinPid"], -1);
    }
}
