//! How much is lost at which rate.

use super::pace::{Pace, burst_after};
use crate::support::contestants::{Burst, Contest, Who};
use crate::support::table::{Row, Table};
use std::cell::RefCell;

/// Threads, records per second of each, milliseconds.
const RATES: [(usize, u64, u64); 6] = [
    (1, 2_000_000, 2000),
    (1, 5_000_000, 2000),
    (1, 10_000_000, 2000),
    (2, 3_000_000, 5000),
    (2, 10_000_000, 2000),
    (16, 125_000, 10_000),
];
const WHO: [Who; 3] = [Who::Agent, Who::Stock, Who::Rtrb];

/// Measures them.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section("Records lost, % of those reported");
    for (threads, each, ms) in RATES {
        let pace = Pace { threads, each, ms };
        let name = format!(
            "{threads} x {} records/s for {} s",
            thousands(each),
            ms / 1000
        );
        let row = row(contest, &name, &|who, begin| {
            begin();
            pace.run(contest, who)
        });
        let wanted = [(2, 3_000_000), (16, 125_000)].contains(&(threads, each));
        if wanted {
            let lost = row.samples(Who::Agent.name()).median();
            table.at_most(&format!("% lost, {name}"), lost, 0.0);
        }
        table.row(row);
    }
    let row = row(
        contest,
        "4 threads, 1,000,000 at the instant of start",
        &|who, begin| burst_after(contest, who, 4, 250_000, begin),
    );
    let lost = row.samples(Who::Agent.name()).median();
    table.at_most("% lost, 1,000,000 from 4 threads at start", lost, 0.0);
    table.row(row);
}

type Begin<'a> = &'a dyn Fn();

fn row(contest: &Contest, name: &str, load: &dyn Fn(Who, Begin) -> Burst) -> Row {
    let columns: Vec<&str> = WHO.iter().map(|who| who.name()).collect();
    let mut row = Row::new(name, &columns);
    let mut text = Vec::new();
    for who in WHO {
        let capture = RefCell::new(None);
        let written = who.drained().map(|drain| contest.doors.written(drain));
        let burst = load(who, &|| {
            if who == Who::Agent {
                capture.replace(Some(contest.agent.capture()));
            }
        });
        let lost = match who.drained() {
            Some(drain) => {
                let taken = burst.calls - burst.refused;
                contest
                    .doors
                    .settle(drain, written.unwrap_or_default() + taken);
                burst.refused
            }
            None => {
                let account = capture.take().expect("begun").stop();
                if account.reported != burst.calls {
                    text.push(account.note(burst.calls));
                }
                account.lost
            }
        };
        row.add(who.name(), lost as f64 / burst.calls as f64 * 100.0);
        let seconds = (burst.interval.1 - burst.interval.0) as f64 / 1e9;
        let rate = if seconds > 0.0 {
            format!(" at {:.2} M/s", burst.calls as f64 / seconds / 1e6)
        } else {
            String::new()
        };
        text.push(format!(
            "{} lost {lost} of {}{rate}",
            who.name(),
            burst.calls
        ));
    }
    row.notes.push(text.join("; "));
    row
}

fn thousands(n: u64) -> String {
    if n >= 1_000_000 {
        format!("{},000,000", n / 1_000_000)
    } else {
        format!("{},{:03}", n / 1000, n % 1000)
    }
}
