//! Directories of devices, and what is filed there.

use super::{
    Account, Batch, Clocks, FamilyId, Output, Place, ProfDir, RecordSize, SampleFill, Trace,
    TraceCounts,
};
use super::{process, profdir, router};

impl Output {
    /// Device ticks are what the driver says from here on.
    pub fn set_clocks(&mut self, clocks: Clocks) {
        self.clocks = Some(clocks);
    }

    /// Makes the directory of a device that is open, once.
    pub fn add_device(&mut self, device: u32) {
        if !self.devices.insert(device) || self.error.is_some() {
            return;
        }
        let sample = self.params.sample_json(&SampleFill {
            devices: &device.to_string(),
            host: false,
            result_dir: &self.dir.path().to_string_lossy(),
            pid: process::current_pid(),
        });
        // The capture's own start: the parser drops aicpu records that are older than the device's.
        let start = self.start;
        let clock = self.clocks.as_ref().and_then(|clocks| clocks.of(device));
        if let Some(kind) = self.clocks.as_ref().and_then(Clocks::platform) {
            self.dir.set_platform_version(kind.to_string());
        }
        let add = |dir: &mut ProfDir| dir.add_device(device, &sample, start, clock.clone());
        if let Err(error) = self.with_patience(add) {
            self.write_failed(&error);
        }
    }

    /// Writes aicpu records that came through a channel of the device's.
    pub fn write_batch(&mut self, batch: &Batch, account: &mut Account) {
        let size = RecordSize::Additional.bytes();
        let mut counts = TraceCounts::default();
        counts.add(Trace::Aicpu, (batch.bytes.len() / size) as u64);
        self.add_device(batch.device);
        let (place, name) = router::aicpu_family(batch.device);
        let family = self.dir.family(place, &name, Some(size));
        self.write(family, &batch.bytes, &counts, account, None);
    }

    pub(super) fn only_device(&self) -> Option<u32> {
        let mut devices = self.devices.iter().copied();
        devices.next().filter(|_| devices.next().is_none())
    }

    /// Family of a DATA_PREPROCESS report; device 64 stands for the host (spec 3 section 3). The parser looks for some
    /// in devices alone: without one, those go where aicpu records without a device go.
    pub(super) fn legacy_family(&mut self, tag: &[u8], device: Option<u32>) -> FamilyId {
        const HOST: u32 = 64;
        const OF_DEVICES: [&[u8]; 3] = [b"AICPU", b"AICPU_MODEL", b"AICPUMI"];
        let named = device.filter(|&device| device < HOST);
        let any = || self.only_device().unwrap_or(0);
        let device = named.or_else(|| OF_DEVICES.contains(&tag).then(any));
        let tag = profdir::family_file_name(tag);
        if let Some(device) = device {
            self.add_device(device);
        }
        let place = device.map_or(Place::Host, Place::Device);
        let name = format!("DATA_PREPROCESS.{tag}.{}", device.unwrap_or(HOST));
        self.dir.family(place, &name, None)
    }
}
