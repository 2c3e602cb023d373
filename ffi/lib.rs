//! The C ABI over `msprof_agent_core`.
