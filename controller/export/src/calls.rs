//! The calls of the host, one after the other: api records, and events in pairs (spec 3 section 6.1).

use msprof_agent_core::profdir::reader::{ReadError, Records};
use msprof_agent_core::records::{ApiRecord, EventKey, MAGIC, level};
use std::collections::HashMap;

/// Events waiting for their partner; beyond this number, more are counted as unpaired at once.
const WAITING_MAX: usize = 1 << 20;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// One of [`level`](msprof_agent_core::records::level).
    pub level: u16,
    /// Type, named per level.
    pub kind: u32,
    /// Kernel thread id.
    pub thread: u32,
    /// Number of the run for a pair of events, else 0.
    pub request: u32,
    /// Hash of a name, or a model id at level model.
    pub item: u64,
    /// Ticks.
    pub begin: u64,
    /// Ticks; before the begin in a record that is wrong.
    pub end: u64,
    /// The stock parser's `connection_id`: which record of the api_event files it is, those with begin 0 not counted. That of
    /// the second event of a pair.
    pub connection: u64,
    /// Whether it was reported as a pair of events. The parser's api_statistic leaves these out, its timeline has them.
    pub paired: bool,
}

/// What gives a call its name: calls with the same one have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKey {
    /// Level and type.
    Type(u16, u32),
    /// Id of the name itself, at level communication.
    Item(u64),
}

impl NameKey {
    /// The level of all calls of this name.
    pub fn level(self) -> u16 {
        match self {
            NameKey::Type(lvl, _) => lvl,
            NameKey::Item(_) => level::HCCL,
        }
    }
}

impl Call {
    /// Bytes of its record.
    pub const BYTES: u64 = size_of::<ApiRecord>() as u64;

    /// What gives it its name; [`Source::name`](crate::source::Source::name) has that.
    pub fn name_key(&self) -> NameKey {
        match self.level {
            level::HCCL => NameKey::Item(self.item),
            lvl => NameKey::Type(lvl, self.kind),
        }
    }

    /// How long it took, ticks; negative in a record that is wrong.
    pub fn ticks(&self) -> i128 {
        i128::from(self.end) - i128::from(self.begin)
    }
}

/// What was met on the way and is no call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Events without a partner, but for those that stand alone by their producer's word.
    pub unpaired: u64,
    /// Calls of which one event is in the capture: the agent has made it neutral.
    pub partial: u64,
    /// Api records with begin 0, which the parser drops.
    pub dropped: u64,
    /// What has the place of a record in a slice and no record's magic number: torn, or not written by an agent.
    pub foreign: u64,
}

/// Iterator over the calls of a directory in the order of its files, unaging before aging, as the stock parser numbers them.
/// A pair of events comes in the place of its second one. Errors on reading come once, and reading goes on behind them.
#[derive(Debug)]
pub struct Calls {
    records: Records<ApiRecord>,
    waiting: HashMap<EventKey, u64>,
    skipped: Skipped,
    next: u64,
}

impl Calls {
    pub(crate) fn new(records: Records<ApiRecord>) -> Calls {
        Calls {
            records,
            waiting: HashMap::new(),
            skipped: Skipped::default(),
            next: 0,
        }
    }

    /// What has been skipped so far. After the end, the events that still wait are among it.
    pub fn skipped(&self) -> Skipped {
        let lone = self.waiting.keys().filter(|key| !key.is_single());
        Skipped {
            unpaired: self.skipped.unpaired + lone.count() as u64,
            ..self.skipped
        }
    }

    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// The call that an event ends, or `None` where it begins one.
    fn pair(&mut self, record: &ApiRecord) -> Option<Call> {
        let connection = self.number();
        let key = EventKey::of(record);
        let Some(begin) = self.waiting.remove(&key) else {
            // A time of 0 is as good as none to the parser.
            if record.begin != 0 && self.waiting.len() < WAITING_MAX {
                self.waiting.insert(key, record.begin);
            } else if !key.is_single() {
                self.skipped.unpaired += 1;
            }
            return None;
        };
        Some(Call {
            request: record.request_id,
            begin,
            end: record.begin,
            connection,
            paired: true,
            ..single(record)
        })
    }
}

fn single(record: &ApiRecord) -> Call {
    Call {
        level: record.level,
        kind: record.kind,
        thread: record.thread_id,
        request: 0,
        item: record.item_id,
        begin: record.begin,
        end: record.end,
        connection: 0,
        paired: false,
    }
}

impl Iterator for Calls {
    type Item = Result<Call, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let record = match self.records.next()? {
                Ok(record) => record,
                Err(error) => return Some(Err(error)),
            };
            if record.magic != MAGIC {
                self.skipped.foreign += 1 + self.records.pass_hole();
            } else if record.is_event() {
                if let Some(call) = self.pair(&record) {
                    return Some(Ok(call));
                }
            } else if record.is_neutral() {
                self.skipped.partial += 1;
            } else if record.begin == 0 {
                self.skipped.dropped += 1;
            } else {
                let connection = self.number();
                return Some(Ok(Call {
                    connection,
                    ..single(&record)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use std::path::Path;
    use zerocopy::IntoBytes;

    const NODE: u16 = 10000;
    const MODEL: u16 = 15000;

    fn api(lvl: u16, kind: u32, begin: u64, end: u64) -> ApiRecord {
        ApiRecord {
            magic: MAGIC,
            level: lvl,
            kind,
            thread_id: 7,
            request_id: 0,
            begin,
            end,
            item_id: 3,
        }
    }

    fn event(time: u64, request: u32) -> ApiRecord {
        ApiRecord {
            request_id: request,
            ..api(MODEL, 1, time, ApiRecord::EVENT_END)
        }
    }

    fn directory(dir: &Path, records: &[ApiRecord]) -> Source {
        let bytes: Vec<&[u8]> = records.iter().map(IntoBytes::as_bytes).collect();
        let slice = "host/data/aging.api_event.data.slice_0";
        crate::directory::put(dir, slice, &bytes.concat());
        Source::open(dir).expect("a directory")
    }

    #[test]
    fn calls_come_in_the_order_of_the_files_with_the_parsers_numbers() {
        let home = tempfile::tempdir().expect("a directory");
        let records = [
            api(NODE, 5, 10, 20),
            event(30, 1),
            api(NODE, 5, 0, 20),
            event(35, 2),
            api(NODE, 5, 40, 39),
            event(50, 1),
            api(NODE, 5, 0, 0),
            ApiRecord {
                magic: 0,
                ..api(NODE, 5, 1, 2)
            },
        ];
        let source = directory(home.path(), &records);
        let mut calls = source.calls();
        let found: Vec<Call> = calls.by_ref().map(|call| call.expect("read")).collect();
        let parts = |call: &Call| (call.begin, call.end, call.connection, call.paired);
        let found: Vec<_> = found.iter().map(parts).collect();
        assert_eq!(
            found,
            [(10, 20, 0, false), (40, 39, 3, false), (30, 50, 4, true)]
        );
        let skipped = Skipped {
            unpaired: 1,
            partial: 1,
            dropped: 1,
            foreign: 1,
        };
        assert_eq!(calls.skipped(), skipped);
    }
}
