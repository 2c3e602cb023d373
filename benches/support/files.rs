//! The file system below a directory, and what of its files lies in the page cache.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// What a directory lies on.
pub struct FileSystem {
    /// Such as ext4.
    pub kind: String,
    /// Such as /dev/vda.
    pub source: String,
}

impl FileSystem {
    /// By the longest mount point that `dir` lies below.
    pub fn of(dir: &Path) -> Option<FileSystem> {
        let dir = dir.canonicalize().ok()?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let below = mounts.lines().filter_map(|line| {
            // "36 35 98:0 /root /mount/point options - kind source super", with optional fields before
            // the dash.
            let (place, what) = line.split_once(" - ")?;
            let point = place.split(' ').nth(4)?;
            let mut what = what.split(' ');
            let (kind, source) = (what.next()?.to_owned(), what.next()?.to_owned());
            dir.starts_with(point)
                .then_some((point.len(), FileSystem { kind, source }))
        });
        // Of several on one mount point the last one hides the others.
        Some(below.max_by_key(|(length, _)| *length)?.1)
    }

    /// Whether it has no disk.
    pub fn is_memory(&self) -> bool {
        ["tmpfs", "ramfs"].contains(&self.kind.as_str())
    }

    /// "ext4 on /dev/vda".
    pub fn text(&self) -> String {
        format!("{} on {}", self.kind, self.source)
    }
}

/// Bytes of files in the page cache.
#[derive(Clone, Copy, Default)]
pub struct Cached {
    /// In all.
    pub all: u64,
    /// Not on the disk yet: to be written or being written. `None` where the kernel cannot tell.
    pub unwritten: Option<u64>,
}

/// struct cachestat_range of linux/mman.h.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// struct cachestat of linux/mman.h, pages.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// What lies in the page cache of all files below `dir`.
pub fn cached_below(dir: &Path) -> io::Result<Cached> {
    let mut sum = Cached {
        all: 0,
        unwritten: Some(0),
    };
    for path in files_below(dir)? {
        let file = match File::open(path) {
            Ok(file) => file,
            // Control files are replaced while the capture runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let cached = cached(&file)?;
        sum.all += cached.all;
        sum.unwritten = sum.unwritten.zip(cached.unwritten).map(|(a, b)| a + b);
    }
    Ok(sum)
}

/// Bytes in all files below `dir`.
pub fn bytes_below(dir: &Path) -> io::Result<u64> {
    let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |data| data.len());
    Ok(files_below(dir)?.iter().map(length).sum())
}

fn files_below(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(files_below(&entry.path())?);
        } else {
            files.push(entry.path());
        }
    }
    Ok(files)
}

fn cached(file: &File) -> io::Result<Cached> {
    /// The same on all architectures; since Linux 6.5.
    const SYS_CACHESTAT: libc::c_long = 451;
    let range = Range {
        offset: 0,
        // To the end.
        length: 0,
    };
    let mut stat = CacheStat::default();
    // SAFETY: both structures are as the kernel has them and outlive the call.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &range, &mut stat, 0) };
    let page = page_bytes();
    if result == 0 {
        return Ok(Cached {
            all: stat.cache * page,
            unwritten: Some((stat.dirty + stat.writeback) * page),
        });
    }
    Ok(Cached {
        all: resident_pages(file)? * page,
        unwritten: None,
    })
}

/// By mincore over a mapping that is never touched, so that it adds nothing to the process's memory.
fn resident_pages(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len() as usize;
    if length == 0 {
        return Ok(0);
    }
    let mut pages = vec![0u8; length.div_ceil(page_bytes() as usize)];
    // SAFETY: a new mapping of an open file, given back below; mincore writes a byte for each of its pages,
    // and nobody touches them.
    unsafe {
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        let null = std::ptr::null_mut();
        let mapping = libc::mmap(null, length, protection, flags, file.as_raw_fd(), 0);
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let result = libc::mincore(mapping, length, pages.as_mut_ptr());
        let error = io::Error::last_os_error();
        libc::munmap(mapping, length);
        if result != 0 {
            return Err(error);
        }
    }
    Ok(pages.iter().map(|&page| u64::from(page & 1)).sum())
}

fn page_bytes() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Waits until the file system below `dir` has written what it holds.
pub fn sync(dir: &Path) -> io::Result<()> {
    let dir = File::open(dir)?;
    // SAFETY: an open descriptor.
    match unsafe { libc::syncfs(dir.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
