//! The old reporter interface, `MsprofReportData` (spec 2 section 2.3).

use crate::boundary::{BAD_ARGUMENT, SUCCESS, c_slice, used};
use crate::stock::pass_on;
use crate::types::{ReporterData, ReporterHash};
use msprof_agent_core::agent::Agent;
use msprof_agent_core::{gate, report};
use std::ffi::c_void;

/// Modules.
const DATA_PREPROCESS: u32 = 0;
const HCCL: u32 = 1;
const RUNTIME: u32 = 4;
const MSPROF: u32 = 5;

/// Types of calls.
const REPORT: u32 = 0;
const INIT: u32 = 1;
const UNINIT: u32 = 2;
const MAX_LEN: u32 = 3;
const HASH: u32 = 4;

/// Longest data of one report, bytes.
const REPORT_MAX: u32 = 65_536;

/// The old reporter interface. Module 0 (DATA_PREPROCESS): type 0 reports aicpu or dp records (88 bytes:
/// char tag[64], i32 device at 64, u64 length at 72, pointer at 80), 1 init, 2 uninit, 3 writes the u32
/// maximum length of a report, 4 gives the id of a string (32 bytes: u64 length at 8, pointer at 16, id
/// out at 24). Modules 1 to 4 (HCCL, ACL, FRAMEWORK, RUNTIME) report by other calls; they answer 0
/// whatever the type. Returns 0, or -1 for a bad argument; a report while nothing is captured returns 0
/// whatever its arguments.
///
/// # Safety
/// `data` is null or valid for reads and writes of `len` bytes; what it points to is valid for the
/// length it says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofReportData(
    module: u32,
    kind: u32,
    data: *mut c_void,
    len: u32,
) -> i32 {
    pass_on!(MsprofReportData(module, kind, data, len));
    used(|agent| {
        // SAFETY: by this function's contract.
        let result = unsafe { report_data(agent, module, kind, data, len) };
        match module {
            // libruntime registers its type names only if init is answered with 0.
            HCCL..=RUNTIME => SUCCESS,
            _ => result,
        }
    })
}

/// # Safety
/// As `MsprofReportData`.
unsafe fn report_data(agent: &Agent, module: u32, kind: u32, data: *mut c_void, len: u32) -> i32 {
    if module > MSPROF {
        return BAD_ARGUMENT;
    }
    let has = |bytes: usize| !data.is_null() && len as usize >= bytes;
    match kind {
        INIT | UNINIT => SUCCESS,
        REPORT if gate::is_off() => SUCCESS,
        MAX_LEN if has(4) => {
            // SAFETY: at least 4 writable bytes; alignment is not assumed.
            unsafe { data.cast::<u32>().write_unaligned(REPORT_MAX) };
            SUCCESS
        }
        HASH if has(size_of::<ReporterHash>()) => {
            // SAFETY: at least 32 readable bytes; the struct is plain data.
            let mut request = unsafe { data.cast::<ReporterHash>().read_unaligned() };
            let Ok(text_len) = usize::try_from(request.len) else {
                return BAD_ARGUMENT;
            };
            // SAFETY: the text is valid for the length it says, by the contract.
            let Some(text) = (unsafe { c_slice(request.text, text_len) }) else {
                return BAD_ARGUMENT;
            };
            request.id = agent.dictionary.id_of(text);
            // SAFETY: at least 32 writable bytes.
            unsafe { data.cast::<ReporterHash>().write_unaligned(request) };
            SUCCESS
        }
        REPORT if module != DATA_PREPROCESS => SUCCESS,
        REPORT if has(size_of::<ReporterData>()) => {
            // SAFETY: at least 88 readable bytes; the struct is plain data.
            let report = unsafe { data.cast::<ReporterData>().read_unaligned() };
            if report.len > u64::from(REPORT_MAX) {
                return BAD_ARGUMENT;
            }
            // SAFETY: the data is valid for the length it says, by the contract.
            let Some(bytes) = (unsafe { c_slice(report.data, report.len as usize) }) else {
                return BAD_ARGUMENT;
            };
            let tag: Vec<u8> = report
                .tag
                .iter()
                .map(|&c| c as u8)
                .take_while(|&byte| byte != 0)
                .collect();
            report::data_preprocess(&tag, report.device, bytes)
        }
        _ => BAD_ARGUMENT,
    }
}
