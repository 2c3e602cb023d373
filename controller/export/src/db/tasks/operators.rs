//! What the host says of operators, by the call in which it says so.

use super::WHOLE;
use super::shapes::Sets;
use super::spans::{Path, Points, Span, Walk};
use crate::db::Export;
use crate::decode::operators::Tensor;
use msprof_agent_core::records::level;
use std::collections::HashMap;

/// What an operator is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Info {
    /// Id of its name.
    pub(super) name: u64,
    pub(super) task_kind: u32,
    /// Id of its type's name.
    pub(super) op_kind: u64,
    pub(super) block_dim: u32,
    pub(super) hf32: bool,
    /// Whether its shapes are made as it runs.
    pub(super) dynamic: bool,
}

/// All that is said of the operator of one call; the last word counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Operator {
    /// Id of the name in the first record.
    pub(super) name: Option<u64>,
    pub(super) info: Option<Info>,
    /// Id of its attributes.
    pub(super) attr: Option<u64>,
    /// Numbers of its sets of tensors.
    pub(super) tensors: Vec<u32>,
    /// Parts of its task.
    pub(super) contexts: Option<Box<[u32]>>,
}

/// Parts of the tasks of one communication.
#[derive(Clone, Debug, Default)]
pub(super) struct Communication {
    /// First and last part; with them there is the whole task too.
    range: Option<(u32, u32)>,
    /// Parts that are told of one by one.
    parts: Vec<u32>,
}

/// Highest number of a part.
const PART_MAX: u32 = u16::MAX as u32;

impl Communication {
    /// All parts, each once, out of so many that may be put down.
    pub(super) fn contexts(&self, left: &mut usize) -> Vec<u32> {
        let mut contexts = match self.range {
            Some((first, last)) => (first..=last.min(PART_MAX)).chain([WHOLE]).collect(),
            None => self.parts.clone(),
        };
        contexts.sort_unstable();
        contexts.dedup();
        if contexts.is_empty() || contexts.len() > *left {
            return vec![WHOLE];
        }
        *left -= contexts.len();
        contexts
    }
}

/// Records of one kind by their time.
type Timed<T> = Vec<(u64, T)>;

/// Records of one thread.
#[derive(Default)]
struct Thread {
    infos: Timed<Info>,
    attrs: Timed<(u64, u64)>,
    tensors: Timed<(u64, u32)>,
    contexts: Timed<(u64, Box<[u32]>)>,
    ranges: Timed<(u32, u32)>,
    parts: Timed<u32>,
}

/// Records of all threads that have tasks.
pub(super) struct Records {
    threads: HashMap<u32, Thread>,
    pub(super) sets: Vec<Box<[Tensor]>>,
}

impl Records {
    /// Reads those of threads that have points, and adds theirs to them.
    /// Of communications, if that is wanted.
    pub(super) fn read(
        export: &mut Export<'_>,
        points: &mut Points,
        contexts: bool,
        communications: bool,
    ) -> Records {
        let source = export.source;
        let mut threads: HashMap<u32, Thread> = HashMap::new();
        let mut sets = Sets::default();
        for dynamic in [false, true] {
            for info in source.node_infos_of(dynamic) {
                let Some(info) = export.read(info) else {
                    continue;
                };
                if points.add_more(info.thread, info.time) {
                    let said = Info {
                        name: info.name,
                        task_kind: info.task_kind,
                        op_kind: info.op_kind,
                        block_dim: info.block_dim,
                        hf32: info.flags != 0,
                        dynamic,
                    };
                    let thread = threads.entry(info.thread).or_default();
                    thread.infos.push((info.time, said));
                }
            }
        }
        for attr in source.node_attrs() {
            let Some(attr) = export.read(attr) else {
                continue;
            };
            if points.add_more(attr.thread, attr.time) {
                let thread = threads.entry(attr.thread).or_default();
                thread.attrs.push((attr.time, (attr.name, attr.text)));
            }
        }
        for said in source.tensors() {
            let Some(said) = export.read(said) else {
                continue;
            };
            if points.add_more(said.thread, said.time) {
                let thread = threads.entry(said.thread).or_default();
                let set = sets.number(said.tensors);
                thread.tensors.push((said.time, (said.name, set)));
            }
        }
        if contexts {
            for said in source.context_ids() {
                let Some(said) = export.read(said) else {
                    continue;
                };
                let wanted = said.level == level::NODE || communications;
                if !wanted || !points.add_more(said.thread, said.time) {
                    continue;
                }
                let thread = threads.entry(said.thread).or_default();
                match (said.level, &*said.ids) {
                    (level::NODE, ids) => {
                        thread.contexts.push((said.time, (said.name, ids.into())));
                    }
                    (level::HCCL, [first, last]) => {
                        thread.ranges.push((said.time, (*first, *last)));
                    }
                    _ => {}
                }
            }
        }
        if communications {
            for said in source.communication_parts() {
                let Some((time, thread, part)) = export.read(said) else {
                    continue;
                };
                if points.add_more(thread, time) {
                    let thread = threads.entry(thread).or_default();
                    thread.parts.push((time, part));
                }
            }
        }
        for thread in threads.values_mut() {
            thread.infos.sort_by_key(|(time, _)| *time);
            thread.attrs.sort_by_key(|(time, _)| *time);
            thread.tensors.sort_by_key(|(time, _)| *time);
            thread.contexts.sort_by_key(|(time, _)| *time);
            thread.ranges.sort_by_key(|(time, _)| *time);
            thread.parts.sort_by_key(|(time, _)| *time);
        }
        Records {
            threads,
            sets: sets.into_list(),
        }
    }

    /// Operators of a thread by the number of their call among the thread's spans.
    pub(super) fn operators(&self, thread: u32, spans: &[Span]) -> HashMap<usize, Operator> {
        let mut operators: HashMap<usize, Operator> = HashMap::new();
        let Some(thread) = self.threads.get(&thread) else {
            return operators;
        };
        // Where one call holds another, what the operator is belongs to the inner one.
        let inner = |path: Path| path.outer_nodes[1].or(path.outer_nodes[0]);
        let outer = |path: Path| path.outer_nodes[0];
        each(spans, &thread.infos, inner, |at, info| {
            let operator = operators.entry(at).or_default();
            operator.name.get_or_insert(info.name);
            operator.info = Some(*info);
        });
        each(spans, &thread.attrs, outer, |at, (name, text)| {
            let operator = operators.entry(at).or_default();
            operator.name.get_or_insert(*name);
            operator.attr = Some(*text);
        });
        let mut last: HashMap<usize, (u64, u64)> = HashMap::new();
        let mut walk = Walk::new(spans);
        for (time, (name, set)) in &thread.tensors {
            let Some(at) = outer(walk.path(*time)) else {
                continue;
            };
            let operator = operators.entry(at).or_default();
            operator.name.get_or_insert(*name);
            // More tensors than a record has room for: several records of one name and time.
            if last.insert(at, (*time, *name)) != Some((*time, *name)) {
                operator.tensors.clear();
            }
            operator.tensors.push(*set);
        }
        each(spans, &thread.contexts, outer, |at, (name, ids)| {
            let operator = operators.entry(at).or_default();
            operator.name.get_or_insert(*name);
            operator.contexts = Some(ids.clone());
        });
        operators
    }
}

impl Records {
    /// Communications of a thread by the number of their call among the thread's spans.
    pub(super) fn communications(
        &self,
        thread: u32,
        spans: &[Span],
    ) -> HashMap<usize, Communication> {
        let mut found: HashMap<usize, Communication> = HashMap::new();
        let Some(thread) = self.threads.get(&thread) else {
            return found;
        };
        each(
            spans,
            &thread.ranges,
            |path| path.communication,
            |at, range| {
                found.entry(at).or_default().range = Some(*range);
            },
        );
        each(
            spans,
            &thread.parts,
            |path| path.communication,
            |at, part| {
                found.entry(at).or_default().parts.push(*part);
            },
        );
        found
    }
}

/// Has each record of a thread added to the span that it belongs to.
fn each<T>(
    spans: &[Span],
    records: &Timed<T>,
    owner: impl Fn(Path) -> Option<usize>,
    mut add: impl FnMut(usize, &T),
) {
    let mut walk = Walk::new(spans);
    for (time, record) in records {
        if let Some(at) = owner(walk.path(*time)) {
            add(at, record);
        }
    }
}
