//! Data of a killed process put into its directory after all: what was being written is cut off again, records
//! are appended to the slices of their families.
//!
//! The caller knows from the process's memory what to put where, and nobody vouches for that memory: names are
//! checked, nothing is reached through a link, no file is made longer but by whole records, and only slices of
//! records are touched.

use super::super::families::{MAX_FAMILIES, Place, shared_family_name};
use super::super::listing::{EntryKind, Kind, place_of};
use super::super::names::{parse_slice_name, slice_name};
use super::super::slices::SLICE_BYTES;
use super::tree::Tree;
use crate::profdir::dictionaries::TypeNames;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;

/// Bytes of the dictionary of types that are read.
const TYPES_MAX: u64 = 64 << 20;
/// Longest name of a family; those of the agent are shorter.
const FAMILY_MAX: usize = 220;
/// A process has no more devices than this.
const DEVICES_MAX: u32 = 64;

/// A directory that is filled up.
#[derive(Debug)]
pub(crate) struct Refill<'a> {
    root: &'a Tree,
    places: HashMap<Place, Data>,
}

/// A `data` directory with the newest slice of each family, and its bytes.
#[derive(Debug)]
struct Data {
    tree: Tree,
    newest: HashMap<String, (u32, u64)>,
}

impl<'a> Refill<'a> {
    pub(super) fn new(root: &'a Tree) -> io::Result<Refill<'a>> {
        let mut refill = Refill {
            root,
            places: HashMap::new(),
        };
        for entry in root.list()? {
            let place = place_of(&entry.name).filter(|_| entry.kind == EntryKind::Directory);
            let Some(place) =
                place.filter(|place| *place == Place::Host || device_of(*place).is_some())
            else {
                continue;
            };
            // One without data gets it when it is needed.
            if let Ok(data) = root.enter(&entry.name).and_then(|dir| dir.enter("data")) {
                refill.places.insert(place, Data::of(data)?);
            }
        }
        Ok(refill)
    }

    /// Devices that have a directory.
    pub(crate) fn devices(&self) -> Vec<u32> {
        self.places
            .keys()
            .filter_map(|place| device_of(*place))
            .collect()
    }

    /// Names of types, as far as they were written.
    pub(crate) fn types(&self) -> TypeNames {
        let mut names = TypeNames::default();
        let Some(host) = self.places.get(&Place::Host) else {
            return names;
        };
        let mut slices: Vec<(u32, String)> = Vec::new();
        for entry in host.tree.list().unwrap_or_default() {
            if let Some((family, number)) = parse_slice_name(&entry.name)
                && Kind::of(family) == Kind::Types
            {
                slices.push((number, entry.name));
            }
        }
        slices.sort();
        let mut left = TYPES_MAX;
        for (_, name) in slices {
            let mut bytes = Vec::new();
            let read = host.tree.file(&name);
            let read = read.and_then(|file| file.take(left).read_to_end(&mut bytes));
            left -= read.unwrap_or(0) as u64;
            // A torn line at the end is no name.
            let whole = bytes
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            names.add_lines(&bytes[..whole]);
        }
        names
    }

    /// Brings a slice back to what it was before a write that was under way: `length` bytes, or none at all.
    /// Returns how many bytes were cut off.
    pub(crate) fn undo(
        &mut self,
        place: Place,
        family: &str,
        slice: u32,
        length: u64,
    ) -> io::Result<u64> {
        check_family(family)?;
        let Some(data) = self.places.get_mut(&place) else {
            return Ok(0);
        };
        let name = slice_name(family, slice);
        let there = match data.tree.writable(&name) {
            Ok(file) => file.metadata()?.len(),
            // The storage limit has deleted it since.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        if there <= length && length > 0 {
            return Ok(0);
        }
        match length {
            0 => {
                data.tree.unlink(&name)?;
                data.tree.unlink(&format!("{name}.done"))?;
            }
            _ => data.tree.truncate(&name, length)?,
        }
        *data = Data::of(data.tree.enter(".")?)?;
        Ok(there - length)
    }

    /// Appends whole records of `size` bytes to the newest slice of a family, or to a new one. Where there are as
    /// many families as a process makes, those of a new one go to the one that the rest shares. On an error no
    /// part of them is there.
    pub(crate) fn append(
        &mut self,
        place: Place,
        family: &str,
        size: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        check_family(family)?;
        if Kind::of(family).record_size() != Some(size) || !bytes.len().is_multiple_of(size) {
            return Err(io::Error::other("these are no records of that family"));
        }
        let shared = shared_family_name(family).filter(|_| self.is_beyond(place, family));
        let family = shared.as_deref().unwrap_or(family);
        let data = self.place(place)?;
        let (mut slice, mut length) = data.newest.get(family).copied().unwrap_or_default();
        if length >= SLICE_BYTES {
            slice = slice
                .checked_add(1)
                .ok_or(io::Error::from(ErrorKind::FileTooLarge))?;
            length = 0;
        }
        let name = slice_name(family, slice);
        let file = match data.newest.contains_key(family) && length > 0 {
            true => data.tree.writable(&name)?,
            // An empty one is as good as none.
            false => {
                data.tree.unlink(&name)?;
                data.tree.create(&name)?
            }
        };
        // A write of another kind that was under way has left less than a record.
        length -= length % size as u64;
        if let Err(error) = put_at(&file, bytes, length) {
            match length {
                0 => data.tree.unlink(&name)?,
                _ => file.set_len(length)?,
            }
            return Err(error);
        }
        length += bytes.len() as u64;
        data.newest.insert(family.to_owned(), (slice, length));
        Ok(())
    }

    /// Whether the family would be a new one and there are enough.
    fn is_beyond(&self, place: Place, family: &str) -> bool {
        let data = self.places.get(&place);
        let families: usize = self.places.values().map(|data| data.newest.len()).sum();
        families >= MAX_FAMILIES && data.is_none_or(|data| !data.newest.contains_key(family))
    }

    /// The data of a place; a device that is new gets its directory, whose files the recovery makes.
    fn place(&mut self, place: Place) -> io::Result<&mut Data> {
        if !self.places.contains_key(&place) {
            let name = match (place, device_of(place)) {
                (Place::Host, _) => "host".to_owned(),
                (_, Some(device)) => format!("device_{device}"),
                _ => return Err(io::Error::other("there is no such device")),
            };
            let made_or_there = |made: io::Result<()>| match made {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            };
            if device_of(place).is_some() {
                made_or_there(self.root.make_dir(&name))?;
            }
            let dir = self.root.enter(&name)?;
            made_or_there(dir.make_dir("data"))?;
            self.places.insert(place, Data::of(dir.enter("data")?)?);
        }
        self.places
            .get_mut(&place)
            .ok_or(ErrorKind::NotFound.into())
    }
}

impl Data {
    fn of(tree: Tree) -> io::Result<Data> {
        let mut newest: HashMap<String, (u32, u64)> = HashMap::new();
        for entry in tree.list()? {
            if let Some((family, number)) = parse_slice_name(&entry.name)
                && entry.kind == EntryKind::File
                && entry.name == slice_name(family, number)
            {
                let known = newest.entry(family.to_owned()).or_default();
                *known = (*known).max((number, entry.bytes));
            }
        }
        Ok(Data { tree, newest })
    }
}

fn device_of(place: Place) -> Option<u32> {
    match place {
        Place::Device(device) if device < DEVICES_MAX => Some(device),
        _ => None,
    }
}

/// A plain name of a family of records.
fn check_family(family: &str) -> io::Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let is_plain = family.bytes().all(plain) && family.len() <= FAMILY_MAX;
    match is_plain && Kind::of(family).record_size().is_some() {
        true => Ok(()),
        false => Err(io::Error::other("that is no family of records")),
    }
}

fn put_at(file: &File, bytes: &[u8], length: u64) -> io::Result<()> {
    file.set_len(length)?;
    file.write_all_at(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: &str = "aging.api_event.data";

    /// A PROF directory with one slice, as far as matters here.
    fn directory(content: &[u8]) -> tempfile::TempDir {
        let temp = tempfile::tempdir().expect("temporary directory");
        std::fs::create_dir_all(temp.path().join("host/data")).expect("made");
        std::fs::write(
            temp.path().join(format!("host/data/{FAMILY}.slice_0")),
            content,
        )
        .expect("written");
        temp
    }

    fn slice(temp: &tempfile::TempDir, name: &str) -> Option<Vec<u8>> {
        std::fs::read(temp.path().join(name)).ok()
    }

    #[test]
    fn a_torn_end_is_cut_and_records_follow_whole_ones_until_the_slice_is_full() {
        let temp = directory(&[1; 85]);
        let tree = Tree::open(temp.path()).expect("opens");
        let mut refill = Refill::new(&tree).expect("listed");
        refill
            .append(Place::Host, FAMILY, 40, &[2; 80])
            .expect("appended");
        refill
            .append(Place::Host, FAMILY, 40, &[3; 40])
            .expect("appended");
        let expected = [vec![1; 80], vec![2; 80], vec![3; 40]].concat();
        let name = format!("host/data/{FAMILY}.slice_0");
        assert_eq!(slice(&temp, &name), Some(expected));
        std::fs::File::options()
            .write(true)
            .open(temp.path().join(&name))
            .expect("opens")
            .set_len(SLICE_BYTES)
            .expect("long");
        let mut refill = Refill::new(&tree).expect("listed");
        refill
            .append(Place::Host, FAMILY, 40, &[4; 40])
            .expect("appended");
        assert_eq!(
            slice(&temp, &format!("host/data/{FAMILY}.slice_1")),
            Some(vec![4; 40])
        );
    }

    #[test]
    fn what_was_being_written_is_undone_and_nothing_is_made_longer() {
        let temp = directory(&[1; 100]);
        let tree = Tree::open(temp.path()).expect("opens");
        let name = format!("host/data/{FAMILY}.slice_0");
        let mut refill = Refill::new(&tree).expect("listed");
        assert_eq!(refill.undo(Place::Host, FAMILY, 0, 120).expect("left"), 0);
        assert_eq!(
            refill.undo(Place::Host, FAMILY, 7, 40).expect("not there"),
            0
        );
        assert_eq!(refill.undo(Place::Host, FAMILY, 0, 80).expect("cut"), 20);
        assert_eq!(slice(&temp, &name), Some(vec![1; 80]));
        std::fs::write(temp.path().join(format!("{name}.done")), "x").expect("written");
        assert_eq!(refill.undo(Place::Host, FAMILY, 0, 0).expect("removed"), 80);
        assert_eq!(
            std::fs::read_dir(temp.path().join("host/data"))
                .expect("read")
                .count(),
            0
        );
        refill
            .append(Place::Host, FAMILY, 40, &[5; 40])
            .expect("appended");
        assert_eq!(slice(&temp, &name), Some(vec![5; 40]));
    }

    #[test]
    fn beyond_the_number_of_families_of_a_process_new_ones_share_one() {
        let temp = directory(&[1; 40]);
        let tree = Tree::open(temp.path()).expect("opens");
        let mut refill = Refill::new(&tree).expect("listed");
        let mut append = |family: &str| {
            refill
                .append(Place::Host, family, 64, &[7; 64])
                .expect("appended");
        };
        append("aging.compact.early");
        for number in 2..MAX_FAMILIES {
            append(&format!("unaging.compact.{number}"));
        }
        for family in [
            "aging.compact.late",
            "aging.compact.later",
            "aging.compact.early",
        ] {
            append(family);
        }
        let length = |family| slice(&temp, &format!("host/data/{family}.slice_0")).map(|s| s.len());
        assert_eq!(length("aging.compact.invalid"), Some(128));
        assert_eq!(length("aging.compact.early"), Some(128));
        assert_eq!(length("aging.compact.late"), None);
    }

    #[test]
    fn names_and_links_lead_nowhere_else() {
        let temp = directory(&[1; 80]);
        let outside = tempfile::tempdir().expect("temporary directory");
        let victim = outside.path().join("victim");
        std::fs::write(&victim, [9; 80]).expect("written");
        let data = temp.path().join("host/data");
        std::os::unix::fs::symlink(&victim, data.join("aging.compact.link.slice_0")).expect("link");
        std::fs::hard_link(&victim, data.join("aging.compact.two.slice_0")).expect("link");
        std::os::unix::fs::symlink(outside.path(), temp.path().join("device_3")).expect("link");
        let tree = Tree::open(temp.path()).expect("opens");
        let mut refill = Refill::new(&tree).expect("listed");
        for family in [
            "../aging.api_event.data",
            "aging.compact./../x",
            "unaging.additional.hash_dic",
            "x",
            "",
        ] {
            assert!(refill.undo(Place::Host, family, 0, 0).is_err(), "{family}");
            assert!(
                refill.append(Place::Host, family, 40, &[0; 40]).is_err(),
                "{family}"
            );
        }
        assert!(
            refill
                .undo(Place::Host, "aging.compact.link", 0, 0)
                .is_err()
        );
        assert!(
            refill
                .undo(Place::Host, "aging.compact.two", 0, 64)
                .is_err()
        );
        assert!(
            refill
                .append(Place::Host, "aging.compact.two", 64, &[0; 64])
                .is_err()
        );
        assert!(
            refill
                .append(Place::Device(3), "aicpu.data.3", 256, &[0; 256])
                .is_err()
        );
        assert!(
            refill
                .append(Place::Device(99), "aicpu.data.99", 256, &[0; 256])
                .is_err()
        );
        refill
            .append(Place::Host, "aging.compact.link", 64, &[7; 64])
            .expect("beside the link");
        assert_eq!(std::fs::read(&victim).expect("victim"), [9; 80]);
        assert_eq!(std::fs::read_dir(outside.path()).expect("read").count(), 1);
        refill
            .append(Place::Device(4), "aicpu.data.4", 256, &[0; 256])
            .expect("a new device");
        assert!(slice(&temp, "device_4/data/aicpu.data.4.slice_0").is_some());
    }
}
