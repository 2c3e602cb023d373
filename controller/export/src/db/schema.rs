//! The tables of the database as the stock parser makes them: names, columns, types and indices (schema 1.2.0).

/// Name and type of a column.
pub(super) type Column = (&'static str, &'static str);

const INTEGER: &str = "INTEGER";
const NUMERIC: &str = "NUMERIC";
const TEXT: &str = "TEXT";
const KEY: &str = "INTEGER PRIMARY KEY";

/// Index of a table, made when all its rows are in.
pub(super) const TASK_INDEX: &str = "CREATE INDEX TaskIndex ON TASK (startNs,globalTaskId)";

const ENUM: &[Column] = &[("id", KEY), ("name", TEXT)];

const CANN_API: &[Column] = &[
    ("startNs", INTEGER),
    ("endNs", INTEGER),
    ("type", INTEGER),
    ("globalTid", INTEGER),
    ("connectionId", KEY),
    ("name", INTEGER),
];

const MSTX_EVENTS: &[Column] = &[
    ("startNs", INTEGER),
    ("endNs", INTEGER),
    ("eventType", INTEGER),
    ("rangeId", INTEGER),
    ("category", INTEGER),
    ("message", INTEGER),
    ("globalTid", INTEGER),
    ("endGlobalTid", INTEGER),
    ("domainId", INTEGER),
    ("connectionId", INTEGER),
];

const NPU_OP_MEM: &[Column] = &[
    ("operatorName", INTEGER),
    ("addr", INTEGER),
    ("type", INTEGER),
    ("size", INTEGER),
    ("timestampNs", INTEGER),
    ("globalTid", INTEGER),
    ("totalAllocate", NUMERIC),
    ("totalReserve", NUMERIC),
    ("component", INTEGER),
    ("deviceId", INTEGER),
];

const COMPUTE_TASK_INFO: &[Column] = &[
    ("name", INTEGER),
    ("globalTaskId", KEY),
    ("blockNum", INTEGER),
    ("mixBlockNum", INTEGER),
    ("taskType", INTEGER),
    ("opType", INTEGER),
    ("inputFormats", INTEGER),
    ("inputDataTypes", INTEGER),
    ("inputShapes", INTEGER),
    ("outputFormats", INTEGER),
    ("outputDataTypes", INTEGER),
    ("outputShapes", INTEGER),
    ("attrInfo", INTEGER),
    ("opState", INTEGER),
    ("hf32Eligible", INTEGER),
    ("gridDim", INTEGER),
    ("blockDim", INTEGER),
];

const TASK: &[Column] = &[
    ("startNs", INTEGER),
    ("endNs", INTEGER),
    ("deviceId", INTEGER),
    ("connectionId", INTEGER),
    ("globalTaskId", INTEGER),
    ("globalPid", INTEGER),
    ("taskType", INTEGER),
    ("contextId", INTEGER),
    ("streamId", INTEGER),
    ("taskId", INTEGER),
    ("modelId", INTEGER),
];

const TABLES: &[(&str, &[Column])] = &[
    ("STRING_IDS", &[("id", KEY), ("value", TEXT)]),
    (
        "SESSION_TIME_INFO",
        &[("startTimeNs", INTEGER), ("endTimeNs", INTEGER)],
    ),
    ("NPU_INFO", &[("id", INTEGER), ("name", TEXT)]),
    (
        "RANK_DEVICE_MAP",
        &[("rankId", INTEGER), ("deviceId", INTEGER)],
    ),
    ("HOST_INFO", &[("hostUid", TEXT), ("hostName", TEXT)]),
    ("META_DATA", &[("name", TEXT), ("value", TEXT)]),
    ("CANN_API", CANN_API),
    ("MSTX_EVENTS", MSTX_EVENTS),
    ("NPU_OP_MEM", NPU_OP_MEM),
    (
        "MEMCPY_INFO",
        &[
            ("globalTaskId", NUMERIC),
            ("size", NUMERIC),
            ("memcpyOperation", NUMERIC),
        ],
    ),
    ("COMPUTE_TASK_INFO", COMPUTE_TASK_INFO),
    (
        "COMMUNICATION_SCHEDULE_TASK_INFO",
        &[
            ("name", INTEGER),
            ("globalTaskId", KEY),
            ("taskType", INTEGER),
            ("opType", INTEGER),
        ],
    ),
    (
        "AICORE_FREQ",
        &[
            ("deviceId", INTEGER),
            ("timestampNs", NUMERIC),
            ("freq", INTEGER),
            ("dieId", NUMERIC),
        ],
    ),
    ("TASK", TASK),
    (
        "OVERLAP_ANALYSIS",
        &[
            ("id", KEY),
            ("deviceId", INTEGER),
            ("startNs", NUMERIC),
            ("endNs", NUMERIC),
            ("type", INTEGER),
        ],
    ),
];

/// Columns of a table; those of all tables that are called ENUM are the same.
pub(super) fn columns(name: &str) -> &'static [Column] {
    let table = TABLES.iter().find(|(table, _)| *table == name);
    table.map_or(ENUM, |(_, columns)| columns)
}

/// The statement that makes a table.
pub(super) fn create(name: &str) -> String {
    let columns: Vec<String> = columns(name)
        .iter()
        .map(|(column, kind)| format!("{column} {kind}"))
        .collect();
    format!("CREATE TABLE {name} ({})", columns.join(", "))
}
