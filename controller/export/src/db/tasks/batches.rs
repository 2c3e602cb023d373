//! How many times the numbers of a stream have begun anew when a task was sent.

use super::Task;
use crate::decode::nodes::TaskTrack;
use std::collections::HashMap;

/// Batch in the record that says that a stream has ended.
const DESTROYED: u16 = u16::MAX;

/// A stream's numbers begin anew.
pub(super) struct Flip {
    device: u16,
    stream: u16,
    time: u64,
    /// Number of the first task behind it.
    task: u16,
    batch: u16,
}

impl Flip {
    pub(super) fn of(track: &TaskTrack) -> Flip {
        Flip {
            device: track.device,
            stream: track.stream,
            time: track.time,
            task: track.task,
            batch: track.batch,
        }
    }
}

/// Sets the batch of each task by the flips before it.
pub(super) fn count(tasks: &mut [Task], mut flips: Vec<Flip>) {
    flips.sort_by_key(|flip| flip.time);
    let mut streams: HashMap<(u16, u16), Vec<Flip>> = HashMap::new();
    for flip in flips {
        let key = (flip.device, flip.stream);
        streams.entry(key).or_default().push(flip);
    }
    tasks.sort_by_key(|task| (task.device, task.stream, task.time));
    for tasks in tasks.chunk_by_mut(|a, b| (a.device, a.stream) == (b.device, b.stream)) {
        let key = (tasks[0].device, tasks[0].stream);
        let flips = streams.get(&key).map_or(&[][..], Vec::as_slice);
        // The parser leaves such a stream alone.
        if flips.len() < usize::from(u16::MAX) {
            count_stream(tasks, flips);
        }
    }
}

fn count_stream(tasks: &mut [Task], flips: &[Flip]) {
    let mut batch = 0;
    for at in 0..tasks.len() {
        while flips
            .get(batch)
            .is_some_and(|flip| tasks[at].time > flip.time)
        {
            let flip = &flips[batch];
            batch += 1;
            if flip.batch == DESTROYED {
                continue;
            }
            // Threads take numbers at the same time: some behind the flip have been sent before it.
            let before = tasks[..at].iter_mut().rev();
            for task in before.take_while(|task| task.number < flip.task.into()) {
                task.batch = batch as u16;
            }
        }
        tasks[at].batch = batch as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(time: u64, number: u32) -> Task {
        Task {
            thread: 1,
            time,
            device: 0,
            stream: 2,
            batch: 77,
            number,
            kind: 0,
            kernel: 0,
            extent: None,
        }
    }

    fn flip(time: u64, task: u16, batch: u16) -> Flip {
        Flip {
            device: 0,
            stream: 2,
            time,
            task,
            batch,
        }
    }

    fn batches(tasks: &[Task]) -> Vec<(u64, u16)> {
        tasks.iter().map(|task| (task.time, task.batch)).collect()
    }

    #[test]
    fn tasks_behind_a_flip_are_of_the_next_batch_even_if_they_were_sent_before_it() {
        let mut tasks = [task(10, 65_534), task(20, 0), task(30, 2), task(50, 3)];
        count(&mut tasks, vec![flip(25, 1, 1), flip(40, 0, 2)]);
        assert_eq!(batches(&tasks), [(10, 0), (20, 1), (30, 1), (50, 2)]);
    }

    #[test]
    fn the_end_of_a_stream_counts_and_moves_nothing_that_was_before_it() {
        let mut tasks = [task(10, 0), task(30, 0)];
        count(&mut tasks, vec![flip(20, 9, DESTROYED)]);
        assert_eq!(batches(&tasks), [(10, 0), (30, 1)]);
    }

    #[test]
    fn without_flips_all_are_of_the_first_batch() {
        let mut tasks = [task(10, 0)];
        count(&mut tasks, Vec::new());
        assert_eq!(batches(&tasks), [(10, 0)]);
    }
}
