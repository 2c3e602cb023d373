//! The vendor's functions by name, and where each one is.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Declares [`Function`] and its names.
macro_rules! functions {
    ($($name:ident,)*) => {
        /// A function of the vendor's library, by its name there.
        #[allow(non_camel_case_types)] // the names are the vendor's
        #[derive(Clone, Copy, Debug)]
        pub enum Function {
            $(
                #[doc = stringify!($name)]
                $name,
            )*
        }

        const NAMES: &[&CStr] = &[$(
            // SAFETY: one NUL, at the end.
            unsafe {
                CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
            },
        )*];
    };
}

functions! {
    AdprofCheckFeatureIsOn,
    AdprofGetBatchReportMaxSize,
    AdprofGetHashId,
    AdprofReportAdditionalInfo,
    AdprofReportBatchAdditionalInfo,
    InitInjectionMstx,
    MsprofCheckOpSwitch,
    MsprofFinalize,
    MsprofGetBatchReportMaxSize,
    MsprofGetHashId,
    MsprofGetPath,
    MsprofHostFreqIsEnable,
    MsprofId2Str,
    MsprofInit,
    MsprofNotifySetDevice,
    MsprofRegDataFormat,
    MsprofRegTypeInfo,
    MsprofRegisterCallback,
    MsprofRegisterProfileCallback,
    MsprofReportAdditionalInfo,
    MsprofReportApi,
    MsprofReportBatchAdditionalInfo,
    MsprofReportCompactInfo,
    MsprofReportData,
    MsprofReportEvent,
    MsprofSetConfig,
    MsprofSetDeviceIdByGeModelIdx,
    MsprofStart,
    MsprofStop,
    MsprofStr2Id,
    MsprofSubscribeRawData,
    MsprofSysCycleTime,
    MsprofUnSubscribeRawData,
    MsprofUnsetDeviceIdByGeModelIdx,
    ProfAclCreateStamp,
    ProfAclDestroyStamp,
    ProfAclDrvGetDevNum,
    ProfAclFinalize,
    ProfAclGetCompatibleFeatures,
    ProfAclGetCompatibleFeaturesV2,
    ProfAclGetId,
    ProfAclGetOpAttriVal,
    ProfAclGetOpTime,
    ProfAclGetOpVal,
    ProfAclInit,
    ProfAclMark,
    ProfAclMarkEx,
    ProfAclPop,
    ProfAclPush,
    ProfAclRangePop,
    ProfAclRangePushEx,
    ProfAclRangeStart,
    ProfAclRangeStop,
    ProfAclRegisterDeviceCallback,
    ProfAclSetCategoryName,
    ProfAclSetConfig,
    ProfAclSetStampCategory,
    ProfAclSetStampPayload,
    ProfAclSetStampTraceMessage,
    ProfAclStart,
    ProfAclStop,
    ProfAclSubscribe,
    ProfAclUnSubscribe,
    ProfAclWarmup,
    ProfCheckOpSwitch,
    ProfEnableMstxFunc,
    ProfGetOpExecutionTime,
    ProfImplGetFeatureIsOn,
    ProfImplGetImplInfo,
    ProfImplHostFreqIsEnable,
    ProfImplIfReportBufEmpty,
    ProfImplInitMstxInjection,
    ProfImplSetAdditionalBufPop,
    ProfImplSetAdditionalBufPush,
    ProfImplSetApiBufPop,
    ProfImplSetBatchAddBufIndexShift,
    ProfImplSetBatchAddBufPop,
    ProfImplSetCompactBufPop,
    ProfImplSetMarkEx,
    ProfImplSetProfCommand,
    ProfImplSetVarAddBlockBufBatchPop,
    ProfImplSetVarAddBlockBufIndexShift,
    ProfImplSubscribeRawData,
    ProfImplUnSubscribeRawData,
    ProfOpSubscribe,
    ProfOpUnSubscribe,
    ProfRegisterMstxFunc,
    ProfStr2Id,
    profSetProfCommand,
    profSetStepInfo,
}

/// Null for a function that the vendor's library lacks.
static ADDRESSES: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

impl Function {
    /// Where it is in the vendor's library, once [`fill`] has run.
    #[inline]
    pub fn known_address(self) -> Option<*mut c_void> {
        let address = ADDRESSES[self as usize].load(Ordering::Relaxed);
        (!address.is_null()).then_some(address)
    }
}

/// Looks all functions up at once: a later look-up could wait for the loader's lock, in the midst of a report.
pub fn fill(look_up: impl Fn(&CStr) -> Option<*mut c_void>) {
    for (name, address) in NAMES.iter().zip(&ADDRESSES) {
        address.store(look_up(name).unwrap_or(null_mut()), Ordering::Relaxed);
    }
}
