//! What the numbers in the other tables mean, and the schema's version: the same rows in every database.

use super::table::Table;
use rusqlite::{Connection, Result};

/// What a chip type or an enumeration has for a value that is none.
const NONE: i64 = u16::MAX as i64;
/// What the parser has for a value that is not there.
const NOT_APPLICABLE: i64 = NONE - 1;

const META_DATA: [(&str, &str); 4] = [
    ("SCHEMA_VERSION_MICRO", "0"),
    ("SCHEMA_VERSION_MINOR", "2"),
    ("SCHEMA_VERSION_MAJOR", "1"),
    ("SCHEMA_VERSION", "1.2.0"),
];

type Names = &'static [(i64, &'static str)];

const ENUMS: [(&str, Names); 9] = [
    ("ENUM_API_TYPE", API_TYPES),
    ("ENUM_MODULE", MODULES),
    (
        "ENUM_MSTX_EVENT_TYPE",
        &[
            (0, "marker"),
            (1, "push/pop"),
            (2, "start/end"),
            (3, "marker_ex"),
        ],
    ),
    (
        "ENUM_MEMCPY_OPERATION",
        &[
            (0, "host to host"),
            (1, "host to device"),
            (2, "device to host"),
            (3, "device to device"),
            (4, "managed memory"),
            (5, "addr device to device"),
            (6, "host to device ex"),
            (7, "device to host ex"),
            (NONE, "other"),
        ],
    ),
    (
        "ENUM_OVERLAP_ANALYSIS_TYPE",
        &[
            (0, "COMPUTE"),
            (1, "COMMUNICATION"),
            (2, "COMM_NOT_OVERLAP_COMP"),
            (3, "FREE"),
            (NONE, "RESERVE"),
        ],
    ),
    ("ENUM_HCCL_DATA_TYPE", DATA_TYPES),
    ("ENUM_HCCL_LINK_TYPE", LINK_TYPES),
    ("ENUM_HCCL_TRANSPORT_TYPE", TRANSPORT_TYPES),
    ("ENUM_HCCL_RDMA_TYPE", RDMA_TYPES),
];

const API_TYPES: Names = &[
    (20000, "acl"),
    (15000, "model"),
    (10000, "node"),
    (5500, "communication"),
    (5000, "runtime"),
];

pub(super) const DATA_TYPES: Names = &[
    (0, "INT8"),
    (1, "INT16"),
    (2, "INT32"),
    (3, "FP16"),
    (4, "FP32"),
    (5, "INT64"),
    (6, "UINT64"),
    (7, "UINT8"),
    (8, "UINT16"),
    (9, "UINT32"),
    (10, "FP64"),
    (11, "BFP16"),
    (12, "INT128"),
    (14, "HIF8"),
    (15, "FP8E4M3"),
    (16, "FP8E5M2"),
    (17, "FP8E8M0"),
    (255, "RESERVED"),
    (NOT_APPLICABLE, "N/A"),
    (NONE, "INVALID_TYPE"),
];

pub(super) const LINK_TYPES: Names = &[
    (0, "ON_CHIP"),
    (1, "HCCS"),
    (2, "PCIE"),
    (3, "ROCE"),
    (4, "SIO"),
    (5, "HCCS_SW"),
    (6, "STANDARD_ROCE"),
    (7, "UB"),
    (8, "UBoE"),
    (255, "RESERVED"),
    (NOT_APPLICABLE, "N/A"),
    (NONE, "INVALID_TYPE"),
];

pub(super) const TRANSPORT_TYPES: Names = &[
    (0, "SDMA"),
    (1, "RDMA"),
    (2, "LOCAL"),
    (3, "UB"),
    (4, "ROCE"),
    (255, "RESERVED"),
    (NOT_APPLICABLE, "N/A"),
    (NONE, "INVALID_TYPE"),
];

pub(super) const RDMA_TYPES: Names = &[
    (0, "RDMA_SEND_NOTIFY"),
    (1, "RDMA_SEND_PAYLOAD"),
    (255, "RESERVED"),
    (NOT_APPLICABLE, "N/A"),
    (NONE, "INVALID_TYPE"),
];

const MODULES: Names = &[
    (0, "SLOG"),
    (1, "IDEDD"),
    (2, "SCC"),
    (3, "HCCL"),
    (4, "FMK"),
    (5, "CCU"),
    (6, "DVPP"),
    (7, "RUNTIME"),
    (8, "CCE"),
    (9, "HDC"),
    (10, "DRV"),
    (11, "NET"),
    (22, "DEVMM"),
    (23, "KERNEL"),
    (24, "LIBMEDIA"),
    (25, "CCECPU"),
    (27, "ROS"),
    (28, "HCCP"),
    (29, "ROCE"),
    (30, "TEFUSION"),
    (31, "PROFILING"),
    (32, "DP"),
    (33, "APP"),
    (34, "TS"),
    (35, "TSDUMP"),
    (36, "AICPU"),
    (37, "LP"),
    (38, "TDT"),
    (39, "FE"),
    (40, "MD"),
    (41, "MB"),
    (42, "ME"),
    (43, "IMU"),
    (44, "IMP"),
    (45, "GE"),
    (47, "CAMERA"),
    (48, "ASCENDCL"),
    (49, "TEEOS"),
    (50, "ISP"),
    (51, "SIS"),
    (52, "HSM"),
    (53, "DSS"),
    (54, "PROCMGR"),
    (55, "BBOX"),
    (56, "AIVECTOR"),
    (57, "TBE"),
    (58, "FV"),
    (60, "TUNE"),
    (61, "HSS"),
    (62, "FFTS"),
    (63, "OP"),
    (64, "UDF"),
    (65, "HICAID"),
    (66, "TSYNC"),
    (67, "AUDIO"),
    (68, "TPRT"),
    (69, "ASCENDCKERNEL"),
    (70, "ASYS"),
    (71, "ATRACE"),
    (72, "RTC"),
    (73, "SYSMONITOR"),
    (74, "AMP"),
    (75, "ADETECT"),
    (76, "MBUFF"),
    (77, "CUSTOM"),
];

/// Makes the tables and fills them.
pub(super) fn write(db: &Connection) -> Result<Vec<(&'static str, u64)>> {
    let mut made = Vec::new();
    let mut meta = Table::create(db, "META_DATA")?;
    for row in META_DATA {
        meta.insert(row)?;
    }
    made.push((meta.name(), meta.rows()));
    for (name, rows) in ENUMS {
        let mut table = Table::create(db, name)?;
        for row in rows {
            table.insert(*row)?;
        }
        made.push((table.name(), table.rows()));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_calls_are_levels_and_have_their_names() {
        for (lvl, name) in API_TYPES {
            let lvl = u16::try_from(*lvl).expect("a level");
            assert_eq!(crate::levels::name(lvl), *name);
        }
    }
}
