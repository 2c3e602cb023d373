//! AICORE_FREQ: how fast the cores of devices ran. Of devices that say nothing of it, what info.json says.

use super::Export;
use super::session::platform;
use super::table::LazyTable;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{Control, Profile};
use rusqlite::{Connection, Result};

/// Platforms of which the parser shows it.
const PLATFORMS: [u16; 2] = [5, 7];
/// Beginning of the files in which a device says how its frequency changed; they are not read here.
const CHANGES: &str = "lpmFreqConv.data.";
/// Part of a device that is all of it.
const WHOLE: i64 = -1;

/// Makes the table and fills it.
pub(super) fn write(export: &mut Export<'_>, db: &Connection) -> Result<()> {
    let profile = export.source.profile();
    let mut table = LazyTable::new(db, "AICORE_FREQ");
    for device in profile.devices() {
        let place = Place::Device(device);
        let shown = platform(profile, Place::Host).or_else(|| platform(profile, place));
        if !shown.is_some_and(|platform| PLATFORMS.contains(&platform)) || changes(profile, place) {
            continue;
        }
        let (Some(mhz), Some(start)) = (frequency(profile, place), profile.start(place)) else {
            continue;
        };
        table.insert((device, wall(start.wall_us), mhz, WHOLE))?;
        if let Some(stop) = profile.stop(place) {
            table.insert((device, wall(stop.wall_us), mhz, WHOLE))?;
        }
    }
    export.made(table.name(), table.rows());
    Ok(())
}

fn wall(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// Whether a device says how its frequency changed.
fn changes(profile: &Profile, place: Place) -> bool {
    let section = profile.section(place);
    let mut files = section.iter().flat_map(|section| section.data.iter());
    files.any(|file| file.name.starts_with(CHANGES))
}

/// `aic_frequency` of a device, MHz.
fn frequency(profile: &Profile, place: Place) -> Option<f64> {
    let info = profile.control_json(place, Control::Info).ok()??;
    let device = info.get("DeviceInfo")?.as_array()?.last()?;
    let mhz = device.get("aic_frequency")?.as_str()?.trim().parse().ok()?;
    f64::is_finite(mhz).then_some(mhz)
}
