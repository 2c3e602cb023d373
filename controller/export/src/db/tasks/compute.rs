//! COMPUTE_TASK_INFO: the operators that tasks run; and COMMUNICATION_SCHEDULE_TASK_INFO, those that only lead others.

use super::kinds::{AI_CORE, AI_CPU, FFTS_PLUS, MIX_AIC, MIX_AIV, SIMT, VECTOR_CORE};
use super::operators::{Communication, Operator, Records};
use super::row::Row;
use super::sent::{Sent, SentTasks};
use super::shapes::{self, NOTHING, ShapeIds};
use super::spans::{Path, Points, Span, Spans, Walk};
use super::{Task, TaskIds, Tasks, WHOLE, kind_name};
use crate::db::Export;
use crate::db::strings::Strings;
use crate::db::table::LazyTable;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::Control;
use rusqlite::{Connection, Result};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Kinds of tasks in node_basic_info.
mod task_kind {
    pub(super) const AI_CPU: u32 = 1;
    pub(super) const FFTS_PLUS: u32 = 6;
    pub(super) const COMMUNICATION: u32 = 9;
    pub(super) const COMMUNICATION_ON_AI_CPU: u32 = 256;
}

/// Parts of communications' tasks that are put down in all: two numbers in a record can ask for 65,536.
const PARTS_MAX: usize = 1 << 22;

/// End of the names of kernels on the device's own processors that lead a communication.
const LEADER: &str = "AicpuKernel";
/// The same of those on vector cores.
const VECTOR_LEADER: &str = "AivKernel";

/// Makes the tables and fills them. What tasks were sent, and which of them compute, is put down for the devices whose logs
/// say when they ran.
pub(in crate::db) fn write<'db>(
    export: &mut Export<'_>,
    db: &'db Connection,
    tasks: &Tasks,
    ids: &mut TaskIds,
    strings: &mut Strings<'db>,
) -> Result<SentTasks> {
    let mut sent = SentTasks::new(export);
    if tasks.all().is_empty() {
        return Ok(sent);
    }
    let mut points = Points::default();
    for task in tasks.all() {
        points.add(task.thread, task.time);
    }
    let records = Records::read(export, &mut points, !tasks.sixth, sent.is_wanted());
    points.sort();
    let spans = Spans::read(export, &points, sent.is_wanted());
    drop(points);
    let mut writer = Writer {
        leaders: leading_streams(export),
        export,
        records: &records,
        ids,
        sixth: tasks.sixth,
        kinds: HashMap::new(),
        shapes: HashMap::new(),
        level0: false,
        sent: &mut sent,
        parts: PARTS_MAX,
        compute: LazyTable::new(db, "COMPUTE_TASK_INFO"),
        schedule: LazyTable::new(db, "COMMUNICATION_SCHEDULE_TASK_INFO"),
    };
    writer.level0 = is_level0(writer.export);
    for tasks in tasks.by_thread() {
        let spans = spans.of(tasks[0].thread);
        let operators = records.operators(tasks[0].thread, spans);
        let communications = records.communications(tasks[0].thread, spans);
        let mut walk = Walk::new(spans);
        for task in tasks {
            let path = walk.path(task.time);
            writer.task(task, path, spans, &operators, strings)?;
            if writer.sent.wants(task) {
                writer.put_down(task, path, spans, &operators, &communications);
            }
        }
    }
    let (compute, schedule) = (writer.compute, writer.schedule);
    export.made(compute.name(), compute.rows());
    export.made(schedule.name(), schedule.rows());
    export.report.doubled += compute.ignored() + schedule.ignored();
    Ok(sent)
}

/// Whether the capture was told to say little of tasks.
fn is_level0(export: &Export<'_>) -> bool {
    let profile = export.source.profile();
    let sample = profile.control_json(Place::Host, Control::Sample);
    let sample = sample.ok().flatten().unwrap_or_default();
    let level = sample.get("profLevel").or_else(|| sample.get("prof_level"));
    let level = level.and_then(|level| level.as_str());
    matches!(level, Some("l0" | "level0"))
}

/// Streams of kernels that lead a communication.
fn leading_streams(export: &mut Export<'_>) -> HashSet<u32> {
    let mut streams = HashSet::new();
    for stream in export.source.kernel_streams() {
        streams.extend(export.read(stream));
    }
    streams
}

struct Writer<'a, 'b, 'db> {
    export: &'a mut Export<'b>,
    records: &'a Records,
    ids: &'a mut TaskIds,
    leaders: HashSet<u32>,
    sixth: bool,
    level0: bool,
    /// Names of types of tasks.
    kinds: HashMap<u64, Rc<str>>,
    /// Strings of sets of tensors.
    shapes: HashMap<Vec<u32>, ShapeIds>,
    sent: &'a mut SentTasks,
    /// Parts of communications' tasks that may still be put down.
    parts: usize,
    compute: LazyTable<'db>,
    schedule: LazyTable<'db>,
}

impl<'db> Writer<'_, '_, 'db> {
    /// Writes the rows of a task, if it computes.
    fn task(
        &mut self,
        task: &Task,
        path: Path,
        spans: &[Span],
        operators: &HashMap<usize, Operator>,
        strings: &mut Strings<'db>,
    ) -> Result<()> {
        let kind = self.kind(task.kind);
        let communication = path.communication.map(|at| &spans[at]);
        if let Some(at) = path.node
            && self.is_operator(&spans[at], &kind, communication.is_some())
        {
            let operator = operators.get(&at);
            return self.operator(task, &kind, &spans[at], communication, operator, strings);
        }
        let computes = matches!(
            &*kind,
            AI_CORE | AI_CPU | VECTOR_CORE | MIX_AIC | MIX_AIV | SIMT
        );
        // The parser knows nothing else of a kernel that was sent outside operators, and nothing of one without a name.
        if communication.is_none() && computes && task.kernel != 0 {
            let row = Row::bare(self.export.source, task, &kind, self.level0, self.sixth);
            return self.write(task, &kind, row, strings);
        }
        Ok(())
    }

    /// Puts down what was sent, part by part.
    fn put_down(
        &mut self,
        task: &Task,
        path: Path,
        spans: &[Span],
        operators: &HashMap<usize, Operator>,
        communications: &HashMap<usize, Communication>,
    ) {
        let kind = self.kind(task.kind);
        let communicates = path.communication.is_some();
        let node = path.node.map(|at| &spans[at]);
        let is_operator = node.is_some_and(|node| self.is_operator(node, &kind, communicates));
        let operator = path.node.and_then(|at| operators.get(&at));
        let contexts = match path.communication.map(|at| communications.get(&at)) {
            _ if is_operator => operator_contexts(operator, &kind),
            // Of a communication outside operators the parser knows nothing.
            Some(_) if node.is_none() => return,
            Some(communication) => {
                communication.map_or_else(|| vec![WHOLE], |said| said.contexts(&mut self.parts))
            }
            None if matches!(&*kind, MIX_AIC | MIX_AIV) && !self.sixth => vec![0],
            None => vec![WHOLE],
        };
        let call = match is_operator || communicates {
            true => node,
            false => path.inner.map(|at| &spans[at]),
        };
        let sent = Sent {
            kind: self.sent.kind(kind),
            connection: call.map_or(-1, |call| call.connection.min(i64::MAX as u64) as i64),
            // The table has 32 bits for it.
            model: path.model.map_or(u32::MAX, |at| spans[at].item as u32),
            communicates,
            count: 0,
        };
        for context in contexts {
            self.sent.add(task.key(context), sent);
        }
    }

    /// What tasks of a type are called.
    fn kind(&mut self, kind: u64) -> Rc<str> {
        if let Some(name) = self.kinds.get(&kind) {
            return name.clone();
        }
        let name: Rc<str> = kind_name(self.export, kind).into();
        self.kinds.insert(kind, name.clone());
        name
    }

    /// Whether a task in an operator's call is the operator's.
    fn is_operator(&self, node: &Span, kind: &str, communicates: bool) -> bool {
        let source = self.export.source;
        let runs = kind.starts_with("KERNEL")
            || kind == "STARS_COMMON"
            || (kind == FFTS_PLUS && !communicates);
        runs && source.type_name(node.level, node.kind) != "step_info"
            && !source.string(node.item).starts_with("Lccl")
    }

    fn operator(
        &mut self,
        task: &Task,
        kind: &str,
        node: &Span,
        communication: Option<&Span>,
        operator: Option<&Operator>,
        strings: &mut Strings<'db>,
    ) -> Result<()> {
        let nothing = Operator::default();
        let operator = operator.unwrap_or(&nothing);
        let mut info = operator.info;
        let contexts = operator.contexts.as_ref().filter(|_| has_parts(kind));
        let tensors = &operator.tensors;
        let is_known = is_known(operator, kind);
        let mut name = operator.name.unwrap_or(node.item);
        if !is_known && operator.contexts.is_some() {
            return Ok(());
        }
        if let Some(communication) = communication {
            let mut said = info.filter(|_| is_known).unwrap_or_default();
            said.name = communication.item;
            match kind {
                AI_CPU => said.task_kind = task_kind::COMMUNICATION_ON_AI_CPU,
                AI_CORE => said.task_kind = task_kind::COMMUNICATION,
                _ => {}
            }
            info = Some(said);
            if !is_known {
                name = communication.item;
            }
        } else if kind == AI_CPU
            && let Some(info) = &mut info
            && info.task_kind == task_kind::COMMUNICATION
        {
            info.task_kind = task_kind::AI_CPU;
        }
        let known = |tensors| match is_known {
            true => tensors,
            false => &[][..],
        };
        let shapes = self.shape_ids(known(tensors), strings)?;
        let attr = operator.attr.filter(|_| is_known);
        let parts = match contexts {
            Some(contexts) => contexts,
            None => &[WHOLE][..],
        };
        let source = self.export.source;
        for context in parts {
            let row = match (self.level0, info) {
                (true, _) => Row::brief(source, name, *context),
                (false, Some(info)) if is_known || communication.is_some() => {
                    Row::full(source, &info, attr, shapes, *context)
                }
                // Nothing is known of it.
                _ => continue,
            };
            self.write(task, kind, row, strings)?;
        }
        Ok(())
    }

    /// Strings of tensors; `None` where there are none.
    fn shape_ids(&mut self, sets: &[u32], strings: &mut Strings<'db>) -> Result<Option<ShapeIds>> {
        if sets.is_empty() {
            return Ok(None);
        }
        if let Some(ids) = self.shapes.get(sets) {
            return Ok(Some(*ids));
        }
        let tensors: Vec<_> = sets
            .iter()
            .filter_map(|set| self.records.sets.get(*set as usize))
            .flat_map(|set| set.iter())
            .collect();
        let ids = shapes::ids(&tensors, strings)?;
        self.shapes.insert(sets.to_vec(), ids);
        Ok(Some(ids))
    }

    fn write(
        &mut self,
        task: &Task,
        kind: &str,
        row: Row,
        strings: &mut Strings<'db>,
    ) -> Result<()> {
        let id = self.ids.id(task.key(row.context));
        let leads = self.leaders.contains(&task.stream.into()) || row.name.ends_with(LEADER);
        if self.sent.wants(task) && !leads && !row.name.ends_with(VECTOR_LEADER) {
            self.sent.computes(task.key(row.context));
        }
        let name = strings.id(&row.name)?;
        let task_kind = strings.id(&row.task_kind)?;
        let op_kind = strings.id(&row.op_kind)?;
        if leads {
            return self.schedule.insert((name, id, task_kind, op_kind));
        }
        let nothing = strings.id(NOTHING)?;
        let (mut blocks, mut mixed_blocks) = (row.blocks, row.mixed_blocks);
        let (mut grid, mut block) = (nothing, nothing);
        if let Some(extent) = task.extent {
            if kind == SIMT && !row.has_dimensions {
                // The parser forgets them.
            } else if kind == SIMT {
                grid = strings.id(&dimensions(&extent[..3]))?;
                block = strings.id(&dimensions(&extent[3..6]))?;
            } else {
                // The ratio has three bits.
                (blocks, mixed_blocks) = (
                    extent[0].into(),
                    u32::from(extent[0]) * u32::from(extent[2] & 7),
                );
            }
        }
        let [a, b, c, d, e, f] = row.shapes.unwrap_or([nothing; 6]);
        let attr = strings.id(&row.attr)?;
        let state = strings.id(row.state)?;
        let hf32 = strings.id(row.hf32)?;
        let values = [
            name,
            id,
            blocks.into(),
            mixed_blocks.into(),
            task_kind,
            op_kind,
            a,
            b,
            c,
            d,
            e,
            f,
            attr,
            state,
            hf32,
            grid,
            block,
        ];
        self.compute.insert(rusqlite::params_from_iter(values))
    }
}

/// Whether tasks of a type may be in parts.
fn has_parts(kind: &str) -> bool {
    matches!(
        kind,
        AI_CORE | VECTOR_CORE | FFTS_PLUS | SIMT | MIX_AIC | MIX_AIV
    )
}

/// Whether anything was said of an operator that a task of a type is.
fn is_known(operator: &Operator, kind: &str) -> bool {
    match operator.info {
        // One record more that stands for a graph of parts.
        Some(info) if info.task_kind == task_kind::FFTS_PLUS => false,
        Some(_) => true,
        None => {
            operator.attr.is_some()
                || !operator.tensors.is_empty()
                || (operator.contexts.is_some() && has_parts(kind))
        }
    }
}

/// Parts of an operator's task as the parser has them; the whole one with them.
fn operator_contexts(operator: Option<&Operator>, kind: &str) -> Vec<u32> {
    let Some(operator) = operator else {
        return vec![WHOLE];
    };
    let mut contexts = Vec::new();
    if is_known(operator, kind) {
        match &operator.contexts {
            Some(parts) if has_parts(kind) => contexts.extend(parts.iter()),
            _ => contexts.push(WHOLE),
        }
    }
    if operator.contexts.is_some() || contexts.is_empty() {
        contexts.push(WHOLE);
    }
    contexts
}

fn dimensions(numbers: &[u16]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
    numbers.join(",")
}
