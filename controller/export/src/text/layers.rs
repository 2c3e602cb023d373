//! Which layers a timeline has: what the file of `--reports` says.

use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of the file that are read, as by the stock tool.
const FILE_MAX: u64 = 64 * 1024 * 1024;
/// The object of switches.
const SWITCHES: &str = "json_process";
/// Every switch of the stock tool. Those of layers that are made of data of other collectors change nothing here.
const KNOWN: [&str; 32] = [
    "ascend",
    "acc_pmu",
    "cann",
    "ddr",
    "stars_chip_trans",
    "hbm",
    "communication",
    "ccu",
    "hccs",
    "os_runtime_api",
    "network_usage",
    "disk_usage",
    "memory_usage",
    "cpu_usage",
    "msproftx",
    "npu_mem",
    "overlap_analyse",
    "pcie",
    "sio",
    "stars_soc",
    "step_trace",
    "freq",
    "llc",
    "nic",
    "roce",
    "qos",
    "device_tx",
    "biu_perf",
    "ub",
    "block_detail",
    "dpu",
    "fusion_task",
];

/// Layers of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// Calls.
    pub cann: bool,
    /// Marks and ranges that programs set.
    pub marks: bool,
    /// Frequency of AI cores.
    pub frequency: bool,
}

impl Default for Layers {
    fn default() -> Layers {
        Layers {
            cann: true,
            marks: true,
            frequency: true,
        }
    }
}

/// Why a file of `--reports` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    /// It cannot be read.
    #[error("--reports: cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It says something that is not understood.
    #[error(
        "--reports: {path}: {cause}; an example: {{\"json_process\": {{\"cann\": true, \"msproftx\": false}}}}"
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
}

impl Layers {
    /// Reads a file of switches. Layers that it does not name are off.
    pub fn read(path: &Path) -> Result<Layers, LayersError> {
        let failed = |source| LayersError::Io {
            path: path.to_owned(),
            source,
        };
        let mut text = String::new();
        // A pipe without a writer is not waited for.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path);
        let file = file.map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        file.take(FILE_MAX)
            .read_to_string(&mut text)
            .map_err(failed)?;
        Layers::parse(&text).map_err(|cause| LayersError::Content {
            path: path.to_owned(),
            cause,
        })
    }

    fn parse(text: &str) -> Result<Layers, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let switches = value.get(SWITCHES).and_then(Value::as_object);
        let Some(switches) = switches.filter(|switches| !switches.is_empty()) else {
            return Err(format!(
                "it has no object \"{SWITCHES}\" with a switch in it"
            ));
        };
        for (name, value) in switches {
            if !KNOWN.contains(&name.as_str()) {
                return Err(format!(
                    "\"{}\" is no layer; they are {}",
                    name.escape_debug(),
                    KNOWN.join(", ")
                ));
            }
            if !value.is_boolean() {
                return Err(format!("\"{name}\" is neither true nor false"));
            }
        }
        let is_on = |name: &str| switches.get(name) == Some(&Value::Bool(true));
        Ok(Layers {
            cann: is_on("cann"),
            marks: is_on("msproftx"),
            frequency: is_on("freq"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_turn_layers_off() {
        let layers =
            Layers::parse(r#"{"json_process": {"cann": true, "msproftx": false, "hbm": true}}"#);
        let expected = Layers {
            cann: true,
            marks: false,
            frequency: false,
        };
        assert_eq!(layers, Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, part) in [
            ("", "EOF"),
            ("[]", "no object"),
            (r#"{"json_process": {}}"#, "no object"),
            (r#"{"json_process": {"can": true}}"#, "\"can\" is no layer"),
            (r#"{"json_process": {"cann": "on"}}"#, "\"cann\" is neither"),
        ] {
            let error = Layers::parse(text).expect_err("refused");
            assert!(error.contains(part), "{text}: {error}");
        }
        let missing = Layers::read(Path::new("/nowhere")).expect_err("refused");
        assert!(missing.to_string().contains("cannot read /nowhere"));
    }
}
