//! The driver's library, `libascend_hal.so`: plain C functions, looked up at run time (spec 5 section 5.2).
//!
//! A program that uses devices has it loaded, and that copy is taken, wherever it lies; only where a device is
//! open without it, it is loaded by name. It is never unloaded.

use super::driver::{Driver, Fact, code};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const FILE: &str = "libascend_hal.so";
/// Channels in the driver's list.
const LIST_MAX: usize = 160;
/// What the AICPU's channels are started with: a peripheral, read as it comes, filled every 10 ms.
const PERIPHERAL: i32 = 1;
const PERIOD_MS: u32 = 10;
const REAL_TIME: u32 = 1;
/// `moduleType` of facts about the device as a whole.
const SYSTEM: i32 = 0;

#[repr(C)]
#[derive(Clone, Copy)]
struct Channel {
    name: [u8; 32],
    kind: u32,
    id: u32,
}

#[repr(C)]
struct ChannelList {
    chip: u32,
    count: u32,
    channels: [Channel; LIST_MAX],
}

#[repr(C)]
struct StartParameters {
    kind: i32,
    period_ms: u32,
    real_time: u32,
    user_data: *mut c_void,
    user_data_bytes: u32,
}

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Channel>() == 40);
    assert!(size_of::<ChannelList>() == 6408);
    assert!(offset_of!(StartParameters, user_data) == 16);
    assert!(size_of::<StartParameters>() == 32);
};

type GetChannels = unsafe extern "C" fn(c_uint, *mut ChannelList) -> c_int;
type Start = unsafe extern "C" fn(c_uint, c_uint, *mut StartParameters) -> c_int;
type Read = unsafe extern "C" fn(c_uint, c_uint, *mut c_char, c_uint) -> c_int;
type Stop = unsafe extern "C" fn(c_uint, c_uint) -> c_int;
type Flush = unsafe extern "C" fn(c_uint, c_uint, *mut c_uint) -> c_int;
type DeviceInfo = unsafe extern "C" fn(u32, i32, i32, *mut i64) -> c_int;

/// The functions of the loaded library; an old one has not all of them. They stay where they are, since the library is
/// never unloaded, and are called from one thread.
#[derive(Debug)]
pub struct Hal {
    get_channels: GetChannels,
    start: Start,
    read: Read,
    stop: Stop,
    flush: Option<Flush>,
    device_info: Option<DeviceInfo>,
}

/// Where the library is mapped in this process. Asks the kernel and not the loader, whose lock a program may hold
/// for long.
pub fn mapped_file() -> Option<PathBuf> {
    let maps = fs::read("/proc/self/maps").ok()?;
    maps.split(|&byte| byte == b'\n').find_map(file_in)
}

/// The library's path, if that line of `maps` is of it.
fn file_in(line: &[u8]) -> Option<PathBuf> {
    let at = line.iter().position(|&byte| byte == b'/')?;
    let path = &line[at..];
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    let is_driver = name.strip_prefix(FILE.as_bytes()).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(b".") // Some have a version behind it.
    });
    is_driver.then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

impl Hal {
    /// The library that the program has loaded, or the one that the loader finds by name; `None` also for one without
    /// profiling channels. Waits for the loader's lock.
    pub fn find() -> Option<Hal> {
        let mapped = mapped_file().and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
        let loaded = mapped.and_then(|path| open(&path, libc::RTLD_NOLOAD));
        let by_name = || {
            let name = CString::new(FILE).ok()?;
            open(&name, 0)
        };
        let handle = loaded.or_else(by_name)?;
        // SAFETY: the types are those of the driver's functions of these names (spec 5 section 5.2), and the library
        // is never unloaded.
        unsafe {
            Some(Hal {
                get_channels: symbol(handle, c"prof_drv_get_channels")?,
                start: symbol(handle, c"prof_drv_start")?,
                read: symbol(handle, c"prof_channel_read")?,
                stop: symbol(handle, c"prof_stop")?,
                flush: symbol(handle, c"halProfDataFlush"),
                device_info: symbol(handle, c"halGetDeviceInfo"),
            })
        }
    }
}

fn open(file: &CStr, flags: c_int) -> Option<*mut c_void> {
    // SAFETY: a C string. What the library's constructors do is the driver's matter.
    let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | flags) };
    (!handle.is_null()).then_some(handle)
}

/// A function of the library.
///
/// # Safety
/// `F` is a pointer to a function of the type that the library's has.
unsafe fn symbol<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a handle of dlopen's and a C string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: both are as long as a pointer, and the caller vouches for the type.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}

impl Driver for Hal {
    fn channels(&self, device: u32) -> Result<Vec<u32>, i32> {
        let empty = Channel {
            name: [0; 32],
            kind: 0,
            id: 0,
        };
        // The driver fills in no more than count and ids.
        let mut list = Box::new(ChannelList {
            chip: 0,
            count: 0,
            channels: [empty; LIST_MAX],
        });
        // SAFETY: a list of the length that the driver knows.
        let answer = unsafe { (self.get_channels)(device, &raw mut *list) };
        if answer != code::OK {
            return Err(answer);
        }
        let count = (list.count as usize).min(LIST_MAX);
        Ok(list.channels[..count].iter().map(|c| c.id).collect())
    }

    fn start(&self, device: u32, channel: u32) -> i32 {
        let mut parameters = StartParameters {
            kind: PERIPHERAL,
            period_ms: PERIOD_MS,
            real_time: REAL_TIME,
            user_data: std::ptr::null_mut(),
            user_data_bytes: 0,
        };
        // SAFETY: parameters of the layout that the driver knows, without user data.
        unsafe { (self.start)(device, channel, &raw mut parameters) }
    }

    fn read(&self, device: u32, channel: u32, buffer: &mut [u8]) -> i32 {
        let bytes = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        // SAFETY: the driver writes no more than it is told that there is room for.
        unsafe { (self.read)(device, channel, buffer.as_mut_ptr().cast(), bytes) }
    }

    fn flush(&self, device: u32, channel: u32) -> Option<i32> {
        let flush = self.flush?;
        let mut bytes = 0;
        // SAFETY: a place for a number.
        Some(unsafe { flush(device, channel, &raw mut bytes) })
    }

    fn stop(&self, device: u32, channel: u32) -> i32 {
        // SAFETY: a function of a library that stays loaded, and plain numbers.
        unsafe { (self.stop)(device, channel) }
    }

    fn fact(&self, device: u32, fact: Fact) -> Option<i64> {
        let device_info = self.device_info?;
        let kind = match fact {
            Fact::Version => 1,
            Fact::Counter => 13,
            Fact::MonotonicRaw => 14,
            Fact::CounterKilohertz => 25,
        };
        let mut value = 0;
        // SAFETY: a place for a number.
        let answer = unsafe { device_info(device, SYSTEM, kind, &raw mut value) };
        (answer == code::OK).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_library_is_known_by_its_name_wherever_it_lies() {
        let line = |path: &str| format!("7f00-7f10 r-xp 00000000 08:01 131 {path}").into_bytes();
        let found = |path: &str| file_in(&line(path)).map(|p| p.to_string_lossy().into_owned());
        let path = "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so";
        assert_eq!(found(path).as_deref(), Some(path));
        let path = "/opt/a b/libascend_hal.so.1";
        assert_eq!(found(path).as_deref(), Some(path));
        assert_eq!(found("/opt/libascend_hal.sorry"), None);
        assert_eq!(found("/opt/notlibascend_hal.so"), None);
        assert_eq!(
            file_in(b"7ffe0000-7ffe1000 rw-p 00000000 00:00 0 [stack]"),
            None
        );
    }
}
