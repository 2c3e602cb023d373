//! Numbers of /proc.

/// The first number after `name` in a file of lines "name: number ...".
pub fn field(path: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number of /proc")
}

/// Memory of this process that is resident, KB.
pub fn resident_kb() -> f64 {
    field("/proc/self/status", "VmRSS:")
}

/// What the whole machine has yet to write to its disks or is writing, KB.
pub fn dirty_kb() -> f64 {
    const MEMORY: &str = "/proc/meminfo";
    field(MEMORY, "Dirty:") + field(MEMORY, "Writeback:")
}
