//! The types of the ABI as a C program sees them: records (spec 2 section 2.2), callbacks, and the structs of
//! single calls. Records have the layout of `msprof_agent_core::records`, which the asserts below hold together.

use msprof_agent_core::records::{AdditionalRecord, ApiRecord, CompactRecord};
use std::ffi::{c_char, c_void};

/// First two bytes of every record.
pub const MSPROF_MAGIC: u16 = 0x5A5A;
/// Levels of records.
pub const MSPROF_LEVEL_ACL: u16 = 20000;
/// Model level: ModelExecute and the like.
pub const MSPROF_LEVEL_MODEL: u16 = 15000;
/// Node level: launches and operators.
pub const MSPROF_LEVEL_NODE: u16 = 10000;
/// Records of the AICPU.
pub const MSPROF_LEVEL_AICPU: u16 = 6000;
/// Communication.
pub const MSPROF_LEVEL_HCCL: u16 = 5500;
/// Runtime api calls, task tracks, memcpy infos.
pub const MSPROF_LEVEL_RUNTIME: u16 = 5000;
/// Bytes of payload in a compact record.
pub const MSPROF_COMPACT_DATA: usize = 40;
/// Bytes of payload in an additional record.
pub const MSPROF_ADDITIONAL_DATA: usize = 232;

/// An api call with begin and end, 40 bytes.
/// cbindgen:field-names=[magicNumber, level, type, threadId, reserve, beginTime, endTime, itemId]
#[repr(C)]
pub struct MsprofApi {
    /// MSPROF_MAGIC.
    pub magic: u16,
    /// MSPROF_LEVEL_*.
    pub level: u16,
    /// Number of the call, named by MsprofRegTypeInfo.
    pub kind: u32,
    /// gettid() of the caller.
    pub thread_id: u32,
    /// 0.
    pub reserve: u32,
    /// MsprofSysCycleTime() at the begin.
    pub begin: u64,
    /// MsprofSysCycleTime() at the end.
    pub end: u64,
    /// MsprofGetHashId of an item name, a model id at the model level, or 0.
    pub item_id: u64,
}

/// One point in time, 40 bytes; two of one request pair up to an interval.
/// cbindgen:field-names=[magicNumber, level, type, threadId, requestId, timeStamp, eventFlag, itemId]
#[repr(C)]
pub struct MsprofEvent {
    /// MSPROF_MAGIC.
    pub magic: u16,
    /// MSPROF_LEVEL_*.
    pub level: u16,
    /// Number of the event, named by MsprofRegTypeInfo.
    pub kind: u32,
    /// gettid() of the caller.
    pub thread_id: u32,
    /// Request; 0xFFFF for a single event.
    pub request_id: u32,
    /// MsprofSysCycleTime().
    pub time: u64,
    /// All ones, which tells an event from an api record. MsprofReportEvent sets it.
    pub flag: u64,
    /// As in MsprofApi.
    pub item_id: u64,
}

/// A compact record, 64 bytes.
/// cbindgen:field-names=[magicNumber, level, type, threadId, dataLen, timeStamp, data]
#[repr(C)]
pub struct MsprofCompactInfo {
    /// MSPROF_MAGIC.
    pub magic: u16,
    /// MSPROF_LEVEL_*.
    pub level: u16,
    /// Record type, named by MsprofRegTypeInfo.
    pub kind: u32,
    /// gettid() of the caller.
    pub thread_id: u32,
    /// Bytes of data in use.
    pub data_len: u32,
    /// MsprofSysCycleTime().
    pub time: u64,
    /// Layout by level and type.
    pub data: [u8; MSPROF_COMPACT_DATA],
}

/// An additional record, 256 bytes.
/// cbindgen:field-names=[magicNumber, level, type, threadId, dataLen, timeStamp, data]
#[repr(C)]
pub struct MsprofAdditionalInfo {
    /// MSPROF_MAGIC.
    pub magic: u16,
    /// MSPROF_LEVEL_*.
    pub level: u16,
    /// Record type, named by MsprofRegTypeInfo.
    pub kind: u32,
    /// gettid() of the caller.
    pub thread_id: u32,
    /// Bytes of data in use.
    pub data_len: u32,
    /// MsprofSysCycleTime().
    pub time: u64,
    /// Layout by level and type.
    pub data: [u8; MSPROF_ADDITIONAL_DATA],
}

const _: () = {
    assert!(size_of::<MsprofApi>() == size_of::<ApiRecord>());
    assert!(size_of::<MsprofEvent>() == size_of::<ApiRecord>());
    assert!(size_of::<MsprofCompactInfo>() == size_of::<CompactRecord>());
    assert!(size_of::<MsprofAdditionalInfo>() == size_of::<AdditionalRecord>());
};

/// A component's callback. Called with type 1, a pointer to a command of 5424 bytes, and 5424: at the
/// command's offset 0 the u64 switch word, 8 the second one, 16 the u32 number of devices, 20 their
/// ids, 280 the u32 kind (0 init, 1 start, 2 stop, 3 finalize), 296 the length and 1324 the text of
/// the params. May call back into this library. The result is ignored.
pub type MsprofCommandHandle =
    Option<unsafe extern "C" fn(kind: u32, data: *mut c_void, len: u32) -> i32>;

/// Receives raw data; see MsprofSubscribeRawData.
pub type MsprofRawDataCallback = Option<unsafe extern "C" fn(data: *mut c_void) -> i32>;

/// Writes the table of a mstx module, pointers to places for function pointers, and its length. Returns 0.
pub type MsprofMstxGetter =
    Option<unsafe extern "C" fn(module: i32, table: *mut *mut *mut c_void, size: *mut u32) -> i32>;

/// Fills in the tables that its argument gives out. Returns 0.
pub type MsprofMstxInit = Option<unsafe extern "C-unwind" fn(getter: MsprofMstxGetter) -> i32>;

/// State of the agent, filled in by msprof_agent_status.
#[repr(C)]
pub struct MsprofAgentStatus {
    /// Set by the caller: sizeof(MsprofAgentStatus). No more than this is written.
    pub size: u32,
    /// 0 inert (PROFILING_MODE is not dynamic), 1 idle, 2 capturing, 3 the last capture is being
    /// written, 4 the agent has turned itself off.
    pub state: u32,
    /// Process id as the process sees it.
    pub pid: u32,
    /// Number of open devices.
    pub devices: u32,
    /// Captures begun so far.
    pub captures: u64,
    /// Records written by the running capture (as of the last tenth of a second), or by the last one.
    pub written: u64,
    /// Records lost by it.
    pub lost: u64,
}

/// State values of MsprofAgentStatus.
pub const MSPROF_AGENT_INERT: u32 = 0;
/// Nothing is captured.
pub const MSPROF_AGENT_IDLE: u32 = 1;
/// A capture runs.
pub const MSPROF_AGENT_CAPTURING: u32 = 2;
/// The last capture is being written.
pub const MSPROF_AGENT_FINISHING: u32 = 3;
/// The agent has turned itself off; msprof_agent_last_error says why.
pub const MSPROF_AGENT_DISABLED: u32 = 4;

/// The data of a MsprofReportData report (type 0), 88 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReporterData {
    pub(crate) tag: [c_char; 64],
    pub(crate) device: i32,
    pub(crate) len: u64,
    pub(crate) data: *const u8,
}

/// The data of a MsprofReportData hash request (type 4), 32 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReporterHash {
    pub(crate) device: i32,
    pub(crate) len: u64,
    pub(crate) text: *const u8,
    pub(crate) id: u64,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<ReporterData>() == 88);
    assert!(offset_of!(ReporterData, device) == 64);
    assert!(offset_of!(ReporterData, len) == 72);
    assert!(offset_of!(ReporterData, data) == 80);
    assert!(size_of::<ReporterHash>() == 32);
    assert!(offset_of!(ReporterHash, text) == 16);
    assert!(offset_of!(ReporterHash, id) == 24);
};
