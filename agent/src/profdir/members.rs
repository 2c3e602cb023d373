//! Who is in a group, by the files of the system.
//!
//! Not by the C library, which may ask a directory service and wait for it. A group that the files do not know
//! has members that nobody here knows.

#![forbid(unsafe_code)]

const GROUPS: &str = "/etc/group";
const USERS: &str = "/etc/passwd";
/// More than this is not read of either: a minute of work is no answer.
const BYTES_MAX: u64 = 16 << 20;

/// Whether the files know the group `gid` and no other member of it than `users`.
pub(super) fn are_only(gid: u32, users: &[u32]) -> bool {
    match (read(GROUPS), read(USERS)) {
        (Some(groups), Some(passwd)) => only(&groups, &passwd, gid, users),
        _ => false,
    }
}

fn read(path: &str) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn only(groups: &str, passwd: &str, gid: u32, users: &[u32]) -> bool {
    let number = |field: Option<&&str>| field.and_then(|field| field.parse::<u32>().ok());
    let mut named = Vec::new();
    let mut known = false;
    for line in groups.lines() {
        // name:password:gid:member,member
        let fields: Vec<&str> = line.split(':').collect();
        if number(fields.get(2)) == Some(gid) {
            known = true;
            let members = fields.get(3).copied().unwrap_or_default().split(',');
            named.extend(members.map(str::trim).filter(|name| !name.is_empty()));
        }
    }
    for line in passwd.lines() {
        // name:password:uid:gid:...
        let fields: Vec<&str> = line.split(':').collect();
        let name = fields.first().copied().unwrap_or_default();
        let is_named = named.contains(&name);
        if !is_named && number(fields.get(3)) != Some(gid) {
            continue;
        }
        if !number(fields.get(2)).is_some_and(|uid| users.contains(&uid)) {
            return false;
        }
        named.retain(|other| *other != name);
    }
    // Whoever is left is a user that the files do not know.
    known && named.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
        me:x:1000:1001::/home/me:/bin/sh\n\
        other:x:2000:2000::/home/other:/bin/sh\n\
        odd line\n";

    #[test]
    fn a_group_without_another_member_is_private() {
        let rows = [
            ("own:x:1001:\n", 1001, true),
            ("own:x:1001:me\n", 1001, true),
            ("own:x:1001:me,root\n", 1001, true),
            ("own:x:1001:me,other\n", 1001, false),
            ("own:x:1001: other \n", 1001, false),
            // By two lines of one number, and by somebody from elsewhere.
            ("own:x:1001:\nalias:x:1001:other\n", 1001, false),
            ("own:x:1001:stranger\n", 1001, false),
            // Whose first group it is.
            ("others:x:2000:\n", 2000, false),
            // Of nobody, and of who knows whom.
            ("empty:x:300:\n", 300, true),
            ("own:x:1001:\n", 5000, false),
            ("", 1001, false),
            ("odd line\n:::\nown:x:1001\n", 1001, true),
        ];
        for (groups, gid, expected) in rows {
            let found = only(groups, PASSWD, gid, &[1000, 0]);
            assert_eq!(found, expected, "{gid} in {groups:?}");
        }
    }
}
