//! Error numbers by name: the numbers differ between architectures, the names do not.

use rustix::io::Errno;

const NAMES: [(Errno, &str); 34] = [
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::LOOP, "ELOOP"),
    (Errno::NODATA, "ENODATA"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::ILSEQ, "EILSEQ"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::STALE, "ESTALE"),
    (Errno::NOTCONN, "ENOTCONN"),
    (Errno::KEYEXPIRED, "EKEYEXPIRED"),
    (Errno::REMOTEIO, "EREMOTEIO"),
    (Errno::UCLEAN, "EUCLEAN"),
];

/// Symbols end where the kernel's error range does.
const MAX: i32 = 4095;

pub(super) fn name(errno: Errno) -> String {
    NAMES
        .iter()
        .find(|(known, _)| *known == errno)
        .map_or_else(|| format!("errno-{}", errno.raw_os_error()), |(_, name)| (*name).to_owned())
}

pub(super) fn parse(name: &str) -> Option<Errno> {
    if let Some((errno, _)) = NAMES.iter().find(|(_, known)| *known == name) {
        return Some(*errno);
    }
    let number = name.strip_prefix("errno-")?.parse().ok()?;
    (1..=MAX).contains(&number).then(|| Errno::from_raw_os_error(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back() {
        for number in 1..=MAX {
            let errno = Errno::from_raw_os_error(number);
            assert_eq!(parse(&name(errno)), Some(errno), "{number}");
        }
        for wrong in ["", "EWHAT", "errno-0", "errno--1", "errno-4096", "errno-99999999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
