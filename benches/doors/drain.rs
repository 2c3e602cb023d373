//! A thread that empties rings into a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Between two passes.
const SLEEP: Duration = Duration::from_millis(1);

/// Something that records are taken from.
pub trait Source {
    /// Writes all that waits; returns the number of records.
    fn drain(&mut self, sink: &mut Sink) -> u64;
}

/// Where records go.
pub struct Sink(File);

impl Sink {
    /// Appends records.
    pub fn write<const W: usize>(&mut self, records: &[[u64; W]]) {
        if records.is_empty() {
            return;
        }
        // SAFETY: integers without padding, and as many bytes as they have.
        let bytes = unsafe {
            std::slice::from_raw_parts(records.as_ptr().cast::<u8>(), size_of_val(records))
        };
        self.0.write_all(bytes).expect("room for the records");
    }
}

type Sources = Arc<Mutex<Vec<Box<dyn Source + Send>>>>;

/// A drain thread; it runs until the process ends.
pub struct Drain {
    sources: Sources,
    written: Arc<AtomicU64>,
    file: File,
}

impl Drain {
    /// Starts a thread of that name that appends to a new file.
    pub fn spawn(name: &str, path: &Path) -> Drain {
        let mut options = File::options();
        let file = options
            .append(true)
            .create(true)
            .open(path)
            .expect("the directory is there");
        let mut sink = Sink(file.try_clone().expect("a descriptor"));
        let sources = Sources::default();
        let written = Arc::new(AtomicU64::new(0));
        let (theirs, count) = (sources.clone(), written.clone());
        let run = move || {
            loop {
                for source in theirs.lock().expect("no panic holds it").iter_mut() {
                    let taken = source.drain(&mut sink);
                    count.fetch_add(taken, Ordering::Release);
                }
                std::thread::sleep(SLEEP);
            }
        };
        let builder = std::thread::Builder::new().name(name.to_owned());
        builder.spawn(run).expect("a thread");
        Drain {
            sources,
            written,
            file,
        }
    }

    /// Adds a source.
    pub fn add(&self, source: impl Source + Send + 'static) {
        let mut sources = self.sources.lock().expect("no panic holds it");
        sources.push(Box::new(source));
    }

    /// Records written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Empties the file.
    pub fn trim(&self) {
        self.file.set_len(0).expect("the file is ours");
    }
}
