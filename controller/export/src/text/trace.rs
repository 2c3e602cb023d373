//! A timeline: an array of events in the form of Chrome's traces, one on a line.

use super::output::{Draft, OutputDir, OutputError};
use super::table::{Made, push_json_string};
use std::collections::HashSet;
use std::fmt::Write;

/// Threads of whom it is remembered that they have their names; of an absurd number, some are named again.
const NAMED_MAX: usize = 1 << 18;
/// The device that stands for the host.
const HOST: u32 = 31;

/// A process of the timeline: what one layer of a process or of a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layer {
    /// Process id of the capture.
    pub process: u32,
    /// Its place among the layers; that of its rows on the screen.
    pub sort: u32,
    /// Device, `None` of the host.
    pub device: Option<u32>,
}

impl Layer {
    /// Number of the layer of marks and ranges that programs set.
    pub const PROCESS: u32 = 6;
    /// Number of the layer of calls.
    pub const CANN: u32 = 7;
    /// Number of the layer of the frequency of AI cores.
    pub const FREQUENCY: u32 = 15;

    /// The process id in the timeline.
    pub fn pid(self) -> u64 {
        let device = self.device.unwrap_or(HOST);
        u64::from(self.process) << 10 | u64::from(self.sort) << 5 | u64::from(device)
    }
}

/// A timeline that is written.
#[derive(Debug)]
pub struct Trace<'a> {
    dir: &'a OutputDir,
    kind: &'static str,
    stamp: &'a str,
    /// `None` before its first event.
    draft: Option<Draft>,
    events: u64,
    layers: HashSet<Layer>,
    threads: HashSet<(u64, u32)>,
}

impl<'a> Trace<'a> {
    /// A timeline that has no file before its first event.
    pub fn new(dir: &'a OutputDir, kind: &'static str, stamp: &'a str) -> Trace<'a> {
        Trace {
            dir,
            kind,
            stamp,
            draft: None,
            events: 0,
            layers: HashSet::new(),
            threads: HashSet::new(),
        }
    }

    /// Names a layer, once.
    pub fn layer(&mut self, layer: Layer, name: &str) -> Result<(), OutputError> {
        if !self.layers.insert(layer) {
            return Ok(());
        }
        let pid = layer.pid();
        let labels = match layer.device {
            Some(device) => format!("NPU {device}"),
            None => "CPU".to_owned(),
        };
        let mut line =
            format!(r#"{{"name":"process_name","pid":{pid},"tid":0,"ph":"M","args":{{"name":"#);
        push_json_string(&mut line, name);
        line.push_str("}}");
        self.write(&line)?;
        self.write(&format!(
            r#"{{"name":"process_labels","pid":{pid},"tid":0,"ph":"M","args":{{"labels":"{labels}"}}}}"#
        ))?;
        self.write(&format!(
            r#"{{"name":"process_sort_index","pid":{pid},"tid":0,"ph":"M","args":{{"sort_index":{}}}}}"#,
            layer.sort
        ))
    }

    /// Names a thread of a layer, once.
    pub fn thread(&mut self, pid: u64, thread: u32) -> Result<(), OutputError> {
        if self.threads.len() == NAMED_MAX {
            self.threads.clear();
        }
        if !self.threads.insert((pid, thread)) {
            return Ok(());
        }
        self.write(&format!(
            r#"{{"name":"thread_name","pid":{pid},"tid":{thread},"ph":"M","args":{{"name":"Thread {thread}"}}}}"#
        ))?;
        self.write(&format!(
            r#"{{"name":"thread_sort_index","pid":{pid},"tid":{thread},"ph":"M","args":{{"sort_index":{thread}}}}}"#
        ))
    }

    /// Adds an event: a JSON object.
    pub fn event(&mut self, json: &str) -> Result<(), OutputError> {
        self.events += 1;
        self.write(json)
    }

    fn write(&mut self, json: &str) -> Result<(), OutputError> {
        match &mut self.draft {
            Some(draft) => draft.write(b",\n")?,
            None => {
                let name = format!("{}_{}.json", self.kind, self.stamp);
                let draft = self.draft.insert(self.dir.create(&name)?);
                draft.write(b"[")?;
            }
        }
        match &mut self.draft {
            Some(draft) => draft.write(json.as_bytes()),
            None => Ok(()),
        }
    }

    /// Ends it; the file that it is in, if there was an event.
    pub fn finish(mut self) -> Result<Option<Made>, OutputError> {
        let Some(mut draft) = self.draft.take().filter(|_| self.events > 0) else {
            return Ok(None);
        };
        draft.write(b"]\n")?;
        Ok(Some(Made {
            file: draft.finish()?,
            kind: self.kind,
            rows: self.events,
        }))
    }
}

/// The flow that a numbered mark begins, which a device's record of it would end.
pub fn push_mark_flow(json: &mut String, id: u64, pid: u64, thread: u32, ts: &str) {
    // A string takes everything.
    let _ = write!(
        json,
        r#"{{"name":"MsTx_{id}","ph":"s","id":"{id}","ts":"{ts}","cat":"MsTx","pid":{pid},"tid":{thread},"bp":"e"}}"#
    );
}
