//! Users across user namespaces, where one user has several numbers: a rootless container's root is one of the users
//! outside, for instance (user_namespaces(7)).

#![forbid(unsafe_code)]

use super::peer::Peer;

/// The number by which a namespace knows everybody whom it has no number for, where the kernel does not say another.
const NOBODY: u32 = 65534;
const NOBODY_FILE: &str = "/proc/sys/kernel/overflowuid";

/// The text of /proc/.../uid_map: users of a namespace by their numbers inside and, mostly, those that the reader has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UserMap {
    ranges: Vec<Range>,
}

/// A line of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    inside: u32,
    outside: u32,
    count: u32,
}

/// The number that the user `uid` of ours has where process `pid` lives.
pub fn uid_inside(pid: u32, uid: u32) -> u32 {
    match (text(&pid.to_string()), text("self")) {
        (Some(theirs), Some(ours)) => translated(uid, &theirs, &ours).unwrap_or_else(nobody),
        // A kernel without user namespaces.
        _ => uid,
    }
}

/// Whether a peer is a user whom our namespace has no number for: one of the host, while we are in a container.
/// The number alone does not say it, if a user of ours has it as well.
pub fn is_from_outside(peer: Peer) -> bool {
    peer.uid == nobody() && text("self").is_some_and(|ours| is_unknown(peer, &ours))
}

/// To a reader of the same namespace the kernel tells the numbers of the namespace around it, to any other one the
/// reader's own. So a text that is ours is that of our namespace.
fn translated(uid: u32, theirs: &str, ours: &str) -> Option<u32> {
    match theirs == ours {
        true => Some(uid),
        false => UserMap::parse(theirs).inside(uid),
    }
}

fn is_unknown(nobody: Peer, ours: &str) -> bool {
    let map = UserMap::parse(ours);
    // Whoever is in a pid namespace around ours cannot be one of the users inside of ours.
    !map.is_whole() && (!map.has(nobody.uid) || nobody.pid == 0)
}

fn text(of: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{of}/uid_map")).ok()
}

fn nobody() -> u32 {
    let told = std::fs::read_to_string(NOBODY_FILE).ok();
    told.and_then(|text| text.trim().parse().ok())
        .unwrap_or(NOBODY)
}

impl UserMap {
    fn parse(text: &str) -> UserMap {
        let ranges = text.lines().filter_map(Range::parse).collect();
        UserMap { ranges }
    }

    fn inside(&self, uid: u32) -> Option<u32> {
        self.ranges.iter().find_map(|range| range.inside(uid))
    }

    /// Whether somebody has that number inside.
    fn has(&self, uid: u32) -> bool {
        let has = |range: &Range| {
            uid.checked_sub(range.inside)
                .is_some_and(|at| at < range.count)
        };
        self.ranges.iter().any(has)
    }

    /// Whether it has a number for everybody, as the host's has.
    fn is_whole(&self) -> bool {
        let count = self.ranges.iter().map(|range| u64::from(range.count));
        count.sum::<u64>() >= u64::from(u32::MAX)
    }
}

impl Range {
    fn parse(line: &str) -> Option<Range> {
        let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Range {
            inside: next()?,
            outside: next()?,
            count: next()?,
        })
    }

    fn inside(&self, uid: u32) -> Option<u32> {
        let at = uid.checked_sub(self.outside)?;
        (at < self.count).then(|| self.inside.checked_add(at))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "         0          0 4294967295\n";
    /// A rootless container: its root is our user, the others are of the range that the user was given.
    const ROOTLESS: &str = "         0       1000          1\n         1     100000      65535\n";

    #[test]
    fn users_are_looked_up_in_every_line() {
        for (here, inside) in [
            (1000, Some(0)),
            (100_000, Some(1)),
            (104_241, Some(4242)),
            (165_534, Some(65535)),
            // Of whom it knows nothing.
            (0, None),
            (999, None),
            (1001, None),
            (165_535, None),
        ] {
            assert_eq!(translated(here, ROOTLESS, HOST), inside, "{here}");
        }
    }

    #[test]
    fn in_one_namespace_numbers_are_the_same() {
        // Seen from within, each of these names users of the namespace around it.
        for map in [HOST, ROOTLESS, "0 1000 1\n", ""] {
            assert_eq!(translated(4242, map, map), Some(4242), "{map}");
        }
        assert_eq!(uid_inside(std::process::id(), 4242), 4242);
    }

    #[test]
    fn a_namespace_without_a_map_and_one_beside_ours_know_nobody_of_ours() {
        assert_eq!(translated(1000, "", HOST), None);
        assert_eq!(translated(0, "0 4294967295 1\n", "0 1000 1\n"), None);
    }

    #[test]
    fn what_is_no_line_is_left_out() {
        let map = "0 x 1\n7\n4294967295 5 2\n0 7 1\n";
        assert_eq!(translated(7, map, HOST), Some(0));
        assert_eq!(translated(6, map, HOST), None, "beyond the last number");
    }

    #[test]
    fn a_user_of_the_host_is_told_from_the_containers_own_nobody() {
        let peer = |pid| Peer { uid: NOBODY, pid };
        assert!(is_unknown(peer(7), "0 1000 1\n"));
        assert!(is_unknown(peer(7), ""), "nobody has a number there");
        assert!(!is_unknown(peer(7), ROOTLESS));
        assert!(is_unknown(peer(0), ROOTLESS));
        // On the host nobody is nobody, seen or not.
        assert!(!is_unknown(peer(7), HOST) && !is_unknown(peer(0), HOST));
        let other = Peer { uid: 1, pid: 0 };
        assert!(!is_from_outside(other));
    }
}
