//! The timeline `msprof`: the layer of calls, that of marks and ranges, and the frequency of AI cores.

use super::output::OutputError;
use super::survey::{Counter, Survey};
use super::table::push_json_string;
use super::trace::{Layer, Trace, push_mark_flow};
use super::wall::Wall;
use crate::calls::{Call, NameKey};
use crate::decode::tx::Mark;
use crate::levels;
use crate::number::{push_float, push_us};
use crate::source::Source;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{Control, ReadError};
use msprof_agent_core::records::level;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

/// Types of calls whose texts are kept; of an absurd number, some are made again.
const TEXTS_MAX: usize = 1 << 16;
/// Names of the process layer where the capture does not tell the program's.
const UNNAMED: &str = "PID Name";

/// The beginning of a call's event, and its class, by level and type.
struct Texts {
    /// `{"name":"...","pid":N,"tid":`; without the name where the item has it.
    head: String,
    /// `,"Mode":"...","level":"...","id":`.
    mode: String,
    /// The name as a JSON string; at level acl alone.
    id: Option<String>,
}

/// Writes events of calls.
struct CallEvents<'a> {
    source: &'a Source,
    wall: &'a Wall,
    layer: Layer,
    texts: HashMap<(u16, u32), Texts>,
    line: String,
    item: String,
}

impl<'a> CallEvents<'a> {
    fn new(source: &'a Source, wall: &'a Wall) -> CallEvents<'a> {
        CallEvents {
            source,
            wall,
            layer: Layer {
                process: source.process().pid,
                sort: Layer::CANN,
                device: None,
            },
            texts: HashMap::new(),
            line: String::new(),
            item: String::new(),
        }
    }

    /// The event of a call at `ns` on the wall clock.
    fn event(&mut self, call: &Call, ns: i128) -> &str {
        let pid = self.layer.pid();
        let key = call.name_key();
        if self.texts.len() == TEXTS_MAX {
            self.texts.clear();
        }
        let texts = self
            .texts
            .entry((call.level, call.kind))
            .or_insert_with(|| texts(self.source, call, pid));
        self.item.clear();
        match call.level {
            // A model's number.
            level::MODEL if call.paired => {
                let _ = write!(self.item, "{}", call.item);
            }
            level::MODEL => {
                let _ = write!(self.item, "\"{}\"", call.item);
            }
            _ => push_json_string(&mut self.item, &self.source.string(call.item)),
        }
        let line = &mut self.line;
        line.clear();
        if let NameKey::Item(_) = key {
            let name = event_name(self.source, key);
            line.push_str("{\"name\":");
            push_json_string(line, &name);
        }
        line.push_str(&texts.head);
        // A string takes everything.
        let _ = write!(line, "{},\"ts\":\"", call.thread);
        push_us(line, ns);
        line.push_str("\",\"dur\":");
        push_float(line, self.wall.duration_us(call.ticks()));
        let _ = write!(
            line,
            ",\"ph\":\"X\",\"args\":{{\"Thread Id\":{}",
            call.thread
        );
        line.push_str(&texts.mode);
        line.push_str(match (&texts.id, call.paired) {
            (Some(id), _) => id,
            (None, true) => "0",
            (None, false) => "\"0\"",
        });
        let _ = write!(
            line,
            ",\"item_id\":{},\"connection_id\":{}}}}}",
            self.item, call.connection
        );
        line
    }
}

/// A call's name as its event has it.
fn event_name(source: &Source, key: NameKey) -> String {
    format!("{}@{}", levels::prefix(key.level()), source.name(key))
}

fn texts(source: &Source, call: &Call, pid: u64) -> Texts {
    let name = source.type_name(call.level, call.kind);
    let mut head = String::new();
    if let key @ NameKey::Type(..) = call.name_key() {
        head.push_str("{\"name\":");
        push_json_string(&mut head, &event_name(source, key));
    }
    let _ = write!(head, ",\"pid\":{pid},\"tid\":");
    let class = match call.level {
        level::ACL => levels::acl_class(call.kind),
        _ => Cow::Borrowed(name.as_ref()),
    };
    let mut mode = String::from(",\"Mode\":");
    push_json_string(&mut mode, &class);
    mode.push_str(",\"level\":");
    push_json_string(&mut mode, &levels::name(call.level));
    mode.push_str(",\"id\":");
    Texts {
        head,
        mode,
        id: (call.level == level::ACL).then(|| {
            let mut id = String::new();
            push_json_string(&mut id, &name);
            id
        }),
    }
}

/// The second walk through the calls: each into the timeline, unless it lies before the capture and in no load of a model.
/// How many were left out for that.
pub fn calls(
    source: &Source,
    wall: &Wall,
    survey: &mut Survey,
    mut trace: Option<&mut Trace>,
    mut seen: impl FnMut(u64),
) -> Result<u64, OutputError> {
    let mut events = CallEvents::new(source, wall);
    let mut counter = Counter::default();
    let mut early = 0;
    let layer = events.layer;
    // What cannot be read has been found by the first walk.
    for call in source.calls().flatten() {
        counter.count(&mut seen);
        survey.deviate(&call, wall);
        let ns = wall.ns(call.begin);
        if !wall.is_inside(ns) && !survey.loads.hold(&call, |tick| wall.ns(tick)) {
            early += 1;
            continue;
        }
        if let Some(trace) = &mut trace {
            trace.layer(layer, "CANN")?;
            trace.thread(layer.pid(), call.thread)?;
            trace.event(events.event(&call, ns))?;
        }
    }
    counter.end(&mut seen);
    Ok(early)
}

/// Marks into the two timelines that have them: all into their own, those of the capture into the big one. What could not be
/// read.
pub fn marks<'a>(
    source: &Source,
    wall: &Wall,
    big: &mut Trace<'a>,
    own: &mut Trace<'a>,
) -> Result<Vec<ReadError>, OutputError> {
    let name = match source.process().name.as_str() {
        "" => UNNAMED,
        name => name,
    };
    let mut errors = Vec::new();
    let mut line = String::new();
    for mark in source.marks() {
        let mark = match mark {
            Ok(mark) => mark,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let layer = Layer {
            process: mark.process,
            sort: Layer::PROCESS,
            device: None,
        };
        let (from, to) = (wall.ns(mark.begin), wall.ns(mark.end));
        let wanted = wall.is_inside(from) || wall.is_inside(to);
        let big = Some(&mut *big).filter(|_| wanted);
        for trace in std::iter::once(&mut *own).chain(big) {
            trace.layer(layer, name)?;
            trace.thread(layer.pid(), mark.thread)?;
            line.clear();
            push_mark(&mut line, source, wall, &mark, layer.pid(), from);
            trace.event(&line)?;
            if mark.numbered {
                line.clear();
                let ts = crate::number::us(from);
                push_mark_flow(&mut line, mark.id, layer.pid(), mark.thread, &ts);
                trace.event(&line)?;
            }
        }
    }
    Ok(errors)
}

fn push_mark(line: &mut String, source: &Source, wall: &Wall, mark: &Mark, pid: u64, from: i128) {
    line.push_str("{\"name\":");
    push_json_string(line, &mark.message);
    // A string takes everything.
    let _ = write!(line, ",\"pid\":{pid},\"tid\":{},\"ts\":\"", mark.thread);
    push_us(line, from);
    line.push_str("\",\"dur\":");
    let ticks = i128::from(mark.end) - i128::from(mark.begin);
    push_float(line, wall.duration_us(ticks));
    let event = mark.event_name();
    if mark.numbered {
        let _ = write!(
            line,
            ",\"ph\":\"X\",\"args\":{{\"event_type\":\"{event}\",\"domain\":"
        );
        push_json_string(line, &domain(source, mark));
        line.push_str("}}");
    } else {
        let _ = write!(
            line,
            ",\"ph\":\"X\",\"args\":{{\"Category\":\"{}\",\"Payload_type\":{},\"Payload_value\":{},\"Message_type\":{},\"event_type\":\"{event}\"}}}}",
            mark.category, mark.payload_kind, mark.payload, mark.message_kind
        );
    }
}

/// What a numbered mark's domain is called.
pub fn domain<'a>(source: &'a Source, mark: &Mark) -> Cow<'a, str> {
    let known = source.known_string(mark.domain);
    known.unwrap_or(Cow::Borrowed("invalid"))
}

/// The frequency of a device's AI cores, which is the same all the time: two points, at its start and at its end.
///
/// The stock parser writes it once a millisecond, which draws the same line.
pub fn frequency(source: &Source, device: u32, trace: &mut Trace) -> Result<(), OutputError> {
    let Some((mhz, from, to)) = constant_frequency(source, device) else {
        return Ok(());
    };
    let layer = Layer {
        process: source.process().pid,
        sort: Layer::FREQUENCY,
        device: Some(device),
    };
    trace.layer(layer, "AI Core Freq")?;
    for ns in [from, to] {
        let mut line = String::new();
        let _ = write!(line, "{{\"name\":\"AI Core Freq\",\"ts\":\"");
        push_us(&mut line, ns);
        let _ = write!(
            line,
            "\",\"pid\":{},\"tid\":0,\"ph\":\"C\",\"args\":{{\"MHz\":",
            layer.pid()
        );
        push_float(&mut line, mhz);
        line.push_str("}}");
        trace.event(&line)?;
    }
    Ok(())
}

/// MHz, and from when to when in ns of the wall clock; `None` where they are not known, or change.
fn constant_frequency(source: &Source, device: u32) -> Option<(f64, i128, i128)> {
    /// Platforms of which the stock parser shows it.
    const PLATFORMS: [&str; 3] = ["4", "5", "7"];
    let place = Place::Device(device);
    let profile = source.profile();
    let info = profile.control_json(place, Control::Info).ok()??;
    let platform = info.get("platform_version")?.as_str()?;
    let changes = profile
        .families()
        .iter()
        .any(|family| family.place == place && family.name.starts_with("lpmFreqConv."));
    if !PLATFORMS.contains(&platform) || changes {
        return None;
    }
    let cores = info.get("DeviceInfo")?.as_array()?.first()?;
    let mhz: f64 = cores.get("aic_frequency")?.as_str()?.trim().parse().ok()?;
    let clock = source.device_clock(device);
    if !clock.known || !mhz.is_finite() || mhz <= 0.0 {
        return None;
    }
    let from = clock.wall_of_us(clock.monotonic(clock.start_ticks, 1e6));
    // The device's clock may have been read a little before the start.
    let start = clock.start_us.map(|us| i128::from(us) * 1000);
    let from = from.max(start.unwrap_or(from));
    let stop = profile
        .stop(place)
        .map(|stop| i128::from(stop.wall_us) * 1000);
    Some((mhz, from, stop.unwrap_or(from + 1000)))
}
