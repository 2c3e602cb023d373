//! The schema, column by column, as the stock parser's databases have it.

use super::made;
use super::prof::{Call, Head, Payload, Prof};
use std::collections::BTreeSet;

/// Tables of every database.
const ALWAYS: [&str; 15] = [
    "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)",
    "CREATE TABLE SESSION_TIME_INFO (startTimeNs INTEGER, endTimeNs INTEGER)",
    "CREATE TABLE NPU_INFO (id INTEGER, name TEXT)",
    "CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER)",
    "CREATE TABLE HOST_INFO (hostUid TEXT, hostName TEXT)",
    "CREATE TABLE META_DATA (name TEXT, value TEXT)",
    "CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_MODULE (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_MSTX_EVENT_TYPE (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_MEMCPY_OPERATION (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_HCCL_DATA_TYPE (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_HCCL_LINK_TYPE (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_HCCL_TRANSPORT_TYPE (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_HCCL_RDMA_TYPE (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE ENUM_OVERLAP_ANALYSIS_TYPE (id INTEGER PRIMARY KEY, name TEXT)",
];

/// Tables of what a host may report.
const HOST: [&str; 6] = [
    "CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, \
     connectionId INTEGER PRIMARY KEY, name INTEGER)",
    "CREATE TABLE MSTX_EVENTS (startNs INTEGER, endNs INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, \
     message INTEGER, globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER, connectionId INTEGER)",
    "CREATE TABLE NPU_OP_MEM (operatorName INTEGER, addr INTEGER, type INTEGER, size INTEGER, timestampNs INTEGER, \
     globalTid INTEGER, totalAllocate NUMERIC, totalReserve NUMERIC, component INTEGER, deviceId INTEGER)",
    "CREATE TABLE MEMCPY_INFO (globalTaskId NUMERIC, size NUMERIC, memcpyOperation NUMERIC)",
    "CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER, \
     mixBlockNum INTEGER, taskType INTEGER, opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, \
     inputShapes INTEGER, outputFormats INTEGER, outputDataTypes INTEGER, outputShapes INTEGER, attrInfo INTEGER, \
     opState INTEGER, hf32Eligible INTEGER, gridDim INTEGER, blockDim INTEGER)",
    "CREATE TABLE COMMUNICATION_SCHEDULE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, taskType INTEGER, \
     opType INTEGER)",
];

/// Tables of what a device is.
const DEVICE: [&str; 1] = [
    "CREATE TABLE AICORE_FREQ (deviceId INTEGER, timestampNs NUMERIC, freq INTEGER, dieId NUMERIC)",
];

/// Tables of what a device's log says, and an index.
const LOGS: [&str; 3] = [
    "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, \
     globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER)",
    "CREATE INDEX TaskIndex ON TASK (startNs,globalTaskId)",
    "CREATE TABLE OVERLAP_ANALYSIS (id INTEGER PRIMARY KEY, deviceId INTEGER, startNs NUMERIC, endNs NUMERIC, \
     type INTEGER)",
];

/// Statements of a database.
fn statements(prof: &Prof) -> BTreeSet<String> {
    let made = made(prof);
    let rows = made.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL");
    rows.into_iter().collect()
}

fn set(parts: &[&[&str]]) -> BTreeSet<String> {
    let parts = parts.iter().flat_map(|part| part.iter());
    parts.map(|statement| (*statement).to_owned()).collect()
}

/// A host that reported of everything.
fn host() -> Prof {
    let prof = Prof::new();
    let task = |number: u16, kernel: u64| {
        let payload = Payload::default().u16(0).u16(1).u16(number).u16(0);
        payload.u64(0).u64(kernel).0
    };
    prof.kind(5000, 0, "KERNEL_AICORE")
        .string(1, "kernel")
        .string(2, "LeadAicpuKernel")
        .call(Call::new(20000, 1, 10, 20))
        .additional("aging.additional.msproftx", Head::new(20500, 0, 0), &mark())
        .additional(
            "aging.additional.task_memory_info",
            Head::new(10000, 6, 10),
            &[1; 48],
        )
        .compact(
            "aging.compact.memcpy_info",
            Head::new(5000, 801, 10),
            &[1; 18],
        )
        .compact(
            "aging.compact.task_track",
            Head::new(5000, 802, 10),
            &task(1, 1),
        )
        .compact(
            "aging.compact.task_track",
            Head::new(5000, 802, 11),
            &task(2, 2),
        );
    prof
}

/// A stamp at the start.
fn mark() -> Vec<u8> {
    let head = Payload::default().u64(0).u64(0).u64(0).u64(0).u64(0);
    head.u64(super::prof::BASE).u64(super::prof::BASE).0
}

#[test]
fn a_host_has_the_tables_of_what_it_reported() {
    assert_eq!(statements(&Prof::new()), set(&[&ALWAYS]));
    assert_eq!(statements(&host()), set(&[&ALWAYS, &HOST]));
}

#[test]
fn a_device_of_a_known_kind_has_its_frequency() {
    let device = |platform| statements(&Prof::new().with_device(0, platform));
    assert_eq!(device("5"), set(&[&ALWAYS, &DEVICE]));
    assert_eq!(
        statements(&host().with_device(0, "5")),
        set(&[&ALWAYS, &HOST, &DEVICE])
    );
    let prof = host().with_device(0, "5");
    prof.ran(1, 1, 0, 1_000, false).ran(1, 1, 0, 2_000, true);
    assert_eq!(statements(&prof), set(&[&ALWAYS, &HOST, &DEVICE, &LOGS]));
}
