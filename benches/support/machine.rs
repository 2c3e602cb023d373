//! Where and from what a run was made.

use std::process::Command;

/// The machine, the revision and the time of a run.
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// Number of cores that this process may use.
    pub cores: usize,
    /// Name and release of the kernel, architecture.
    pub kernel: String,
    /// Revision of the sources, with "-dirty" when they were changed.
    pub revision: String,
    /// Day, UTC, such as 2026-11-30.
    pub date: String,
    /// Threads that wanted to run, over the last minute: who else was there.
    pub load: String,
}

impl Machine {
    /// This one, now.
    pub fn here(cores: usize) -> Machine {
        Machine {
            cpu: cpu_model(),
            cores,
            kernel: kernel(),
            revision: output("git", &["describe", "--always", "--dirty"]),
            date: output("date", &["-u", "+%Y-%m-%d"]),
            load: output("cut", &["-d", " ", "-f1", "/proc/loadavg"]),
        }
    }
}

/// Without what a distribution or a host appends to the release.
fn kernel() -> String {
    let release = output("uname", &["-r"]);
    let number: String = release
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    format!(
        "{} {number} {}",
        output("uname", &["-s"]),
        output("uname", &["-m"])
    )
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let numbers = [("family", "cpu family"), ("model", "model\t")]
        .iter()
        .filter_map(|(label, name)| Some(format!(", {label} {}", field(name)?)))
        .collect::<String>();
    match field("model name") {
        Some(name) => name + &numbers,
        None => output("uname", &["-p"]),
    }
}

/// First line of what a command prints; "unknown" when it cannot be run.
fn output(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text
        .ok()
        .and_then(|text| Some(text.lines().next()?.to_owned()));
    line.unwrap_or_else(|| "unknown".to_owned())
}
