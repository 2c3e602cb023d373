//! What was captured and where: SESSION_TIME_INFO, NPU_INFO, RANK_DEVICE_MAP and HOST_INFO.

use super::Export;
use super::table::Table;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{Control, Profile};
use rusqlite::{Connection, Result};

/// How long a capture is taken for that has no end, ns: the parser's own half an hour.
const WITHOUT_END: i64 = 30 * 60 * 1_000_000_000;

const UNKNOWN: &str = "UNKNOWN";

/// Makes the tables and fills them.
pub(super) fn write(export: &mut Export<'_>, db: &Connection) -> Result<()> {
    let profile = export.source.profile();
    let start = export.wall.start();
    let mut times = Table::create(db, "SESSION_TIME_INFO")?;
    if let Some(start) = start {
        let stop = profile.stop(Place::Host).or_else(|| {
            profile
                .devices()
                .find_map(|device| profile.stop(Place::Device(device)))
        });
        let end = stop.map_or(start.saturating_add(WITHOUT_END), |stop| {
            i64::try_from(stop.wall_us)
                .unwrap_or(i64::MAX)
                .saturating_mul(1000)
        });
        times.insert((start, end))?;
    }
    export.made(times.name(), times.rows());

    let mut npus = Table::create(db, "NPU_INFO")?;
    let mut ranks = Table::create(db, "RANK_DEVICE_MAP")?;
    for device in profile.devices() {
        npus.insert((device, chip(profile, device)))?;
        ranks.insert((-1, device))?;
    }
    if npus.rows() == 0 {
        npus.insert((-1, UNKNOWN))?;
        ranks.insert((-1, -1))?;
    }
    export.made(npus.name(), npus.rows());
    export.made(ranks.name(), ranks.rows());

    let mut host = Table::create(db, "HOST_INFO")?;
    let uid = text(profile, Place::Host, "hostUid").unwrap_or_else(|| "0".to_owned());
    let name = text(profile, Place::Host, "hostname").unwrap_or_default();
    host.insert((uid, name))?;
    export.made(host.name(), host.rows());
    Ok(())
}

/// What the stock parser calls a device by its platform_version.
fn chip(profile: &Profile, device: u32) -> &'static str {
    match platform(profile, Place::Device(device)) {
        Some(0) => "Ascend310",
        Some(1) => "Ascend910A",
        Some(4) => "Ascend310P",
        Some(5) => "Ascend910B",
        Some(7) => "Ascend310B",
        Some(15) => "Ascend950",
        _ => UNKNOWN,
    }
}

/// `platform_version` of an info.json.
pub(super) fn platform(profile: &Profile, place: Place) -> Option<u16> {
    text(profile, place, "platform_version")?.parse().ok()
}

/// A text of an info.json.
fn text(profile: &Profile, place: Place, key: &str) -> Option<String> {
    let info = profile.control_json(place, Control::Info).ok()??;
    info.get(key)?.as_str().map(str::to_owned)
}
