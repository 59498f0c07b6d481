//! Paths over nodes: what all file systems have in common.

use std::io::{self, Read, Seek, SeekFrom};

use super::{DirEntry, EntryKind, FileSystem, FsError, MAX_NAMES, Stat};
use crate::ReadSeek;
use crate::disk::source::{Run, damaged, small};
use crate::disk::window::target;

/// Symbolic links followed on one path, as in Linux.
const MAX_LINKS: usize = 40;

/// Components of a path walked, those of links included.
const MAX_COMPONENTS: usize = 1024;

/// The longest target of a symbolic link, as in Linux.
pub(crate) const MAX_TARGET: u64 = 4096;

/// Bytes of one directory that are read at most.
pub(crate) const MAX_DIRECTORY: u64 = 16 << 20;

/// Bytes of directories that are read at most in one file system: each name is looked for from the start, and in a made
/// up one all the blocks of a large directory may be the same.
const MAX_SCANNED: u64 = 1 << 30;

/// What a name that was listed counts, in bytes, as a directory's size may be made up as well.
const NAME: u64 = 64;

/// What a directory calls for each of its names: name, where the node is, and what it is if the directory says so.
/// `.` and `..` may be among them. It answers whether it wants more.
pub(crate) type Visit<'v, Id> = dyn FnMut(&[u8], Id, Option<EntryKind>) -> bool + 'v;

/// A file system as nodes that are found by numbers.
pub(crate) trait Nodes {
    /// What a directory names.
    type Id: Copy;
    /// A file, directory or link.
    type Node: Clone;

    fn name(&self) -> &'static str;
    fn root(&mut self) -> Result<Self::Node, FsError>;
    fn node(&mut self, id: Self::Id) -> Result<Self::Node, FsError>;
    fn kind(&self, node: &Self::Node) -> EntryKind;
    fn size(&self, node: &Self::Node) -> u64;
    /// Every name in a directory.
    fn scan(
        &mut self,
        directory: &Self::Node,
        visit: &mut Visit<'_, Self::Id>,
    ) -> Result<(), FsError>;
    /// The target of a symbolic link.
    fn target(&mut self, link: &Self::Node) -> Result<Vec<u8>, FsError>;
    /// Fills `buf` from a file, within its size.
    fn read_at(&mut self, file: &Self::Node, offset: u64, buf: &mut [u8]) -> Result<(), FsError>;

    /// What it costs to go through a directory, in bytes.
    fn cost(&self, directory: &Self::Node) -> u64 {
        self.size(directory)
    }

    /// Directories each of which may be the root of a system: absolute links inside of one lead into it again.
    fn roots(&mut self) -> Result<Vec<String>, FsError> {
        Ok(vec!["/".to_owned()])
    }

    /// The node of a name in a directory.
    fn lookup(&mut self, directory: &Self::Node, name: &str) -> Result<Option<Self::Id>, FsError> {
        let mut found = None;
        self.scan(directory, &mut |entry, id, _| {
            if entry == name.as_bytes() {
                found = Some(id);
            }
            found.is_none()
        })?;
        Ok(found)
    }
}

/// [`Nodes`] that can be asked for paths.
pub(crate) struct Paths<T> {
    nodes: T,
    roots: Vec<String>,
    /// Bytes of directories that may still be read.
    budget: u64,
}

/// A node and the way to it from the root, links resolved.
struct Place<T: Nodes> {
    way: Vec<(String, T::Node)>,
    node: T::Node,
}

impl<T: Nodes> Place<T> {
    fn path(&self) -> String {
        match self.way.as_slice() {
            [] => "/".to_owned(),
            way => way.iter().fold(String::new(), |path, (name, _)| path + "/" + name),
        }
    }
}

impl<T: Nodes> Paths<T> {
    pub(crate) fn new(mut nodes: T) -> Result<Self, FsError> {
        let roots = nodes.roots()?;
        Ok(Self { nodes, roots, budget: MAX_SCANNED })
    }

    /// Takes from the budget of work.
    fn spend(&mut self, cost: u64) -> Result<(), FsError> {
        let limit = FsError::Limit { what: "bytes in all directories", limit: MAX_SCANNED };
        self.budget = self.budget.checked_sub(cost).ok_or(limit)?;
        Ok(())
    }

    /// Walks a path; the last component is followed if it is a link.
    fn find(&mut self, path: &str) -> Result<Place<T>, FsError> {
        let mut place = Place { way: Vec::new(), node: self.nodes.root()? };
        // The innermost root around the path.
        let inside = |root: &&String| {
            path.strip_prefix(root.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let root = self.roots.iter().filter(inside).max_by_key(|root| root.len());
        let Some(root) = root.cloned().filter(|root| root != "/") else {
            return self.walk(&place, path);
        };
        let rest = &path[root.len()..];
        place = self.walk(&place, &root)?;
        self.walk(&place, rest)
    }

    /// Walks a path from a place that is the root of all in it.
    fn walk(&mut self, root: &Place<T>, path: &str) -> Result<Place<T>, FsError> {
        let mut place = Place { way: root.way.clone(), node: root.node.clone() };
        // What is left to walk, the next component last.
        let mut left: Vec<String> = parts(path);
        let (mut links, mut walked) = (0, 0);
        while let Some(name) = left.pop() {
            walked += 1;
            if walked > MAX_COMPONENTS {
                return Err(FsError::Missing);
            }
            if name == ".." {
                if place.way.len() > root.way.len() {
                    place.way.pop();
                    let inner = place.way.len() > root.way.len();
                    let above = place.way.last().filter(|_| inner);
                    place.node = above.map_or(&root.node, |(_, node)| node).clone();
                }
                continue;
            }
            if self.nodes.kind(&place.node) != EntryKind::Directory {
                return Err(FsError::Missing);
            }
            self.spend(self.nodes.cost(&place.node).min(MAX_DIRECTORY << 4))?;
            let id = self.nodes.lookup(&place.node, &name)?.ok_or(FsError::Missing)?;
            let node = self.nodes.node(id)?;
            if self.nodes.kind(&node) != EntryKind::Link {
                place.way.push((name, node.clone()));
                place.node = node;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(FsError::Missing);
            }
            let link = self.nodes.target(&node)?;
            let link = String::from_utf8(link).map_err(|_| FsError::Missing)?;
            if link.starts_with('/') {
                place = Place { way: root.way.clone(), node: root.node.clone() };
            }
            left.extend(parts(&link));
        }
        Ok(place)
    }

    fn file(&mut self, path: &str) -> Result<T::Node, FsError> {
        let node = self.find(path)?.node;
        match self.nodes.kind(&node) {
            EntryKind::File => Ok(node),
            _ => Err(FsError::Missing),
        }
    }
}

/// The components of a path, the first one last.
fn parts(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}

impl<T: Nodes> FileSystem for Paths<T> {
    fn name(&self) -> &'static str {
        self.nodes.name()
    }

    fn read_dir(&mut self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        let node = self.find(path)?.node;
        if self.nodes.kind(&node) != EntryKind::Directory {
            return Err(FsError::Missing);
        }
        self.spend(self.nodes.cost(&node).min(MAX_DIRECTORY << 4))?;
        let mut found = Vec::new();
        let mut full = false;
        self.nodes.scan(&node, &mut |name, id, kind| {
            if let Ok(name) = std::str::from_utf8(name)
                && !matches!(name, "" | "." | "..")
                && !name.contains(['/', '\0'])
            {
                full = found.len() == MAX_NAMES;
                found.push((name.to_owned(), id, kind));
            }
            !full
        })?;
        self.spend(found.len() as u64 * NAME)?;
        if full {
            return Err(FsError::Limit { what: "names in a directory", limit: MAX_NAMES as u64 });
        }
        let mut entries = Vec::with_capacity(found.len());
        for (name, id, kind) in found {
            let kind = if let Some(kind) = kind {
                kind
            } else {
                let node = self.nodes.node(id)?;
                self.nodes.kind(&node)
            };
            entries.push(DirEntry { name, kind });
        }
        Ok(entries)
    }

    fn read(&mut self, path: &str, limit: usize) -> Result<Vec<u8>, FsError> {
        let node = self.file(path)?;
        let size = self.nodes.size(&node);
        let len = usize::try_from(size).ok().filter(|size| *size <= limit);
        let mut data = vec![0; len.ok_or(FsError::TooLarge(size))?];
        self.nodes.read_at(&node, 0, &mut data)?;
        Ok(data)
    }

    fn open(&mut self, path: &str) -> Result<Box<dyn ReadSeek + '_>, FsError> {
        let node = self.file(path)?;
        Ok(Box::new(File { nodes: &mut self.nodes, node, position: 0 }))
    }

    fn roots(&self) -> &[String] {
        &self.roots
    }

    fn stat(&mut self, path: &str) -> Result<Stat, FsError> {
        let place = self.find(path)?;
        let (kind, size) = (self.nodes.kind(&place.node), self.nodes.size(&place.node));
        Ok(Stat { path: place.path(), kind, size })
    }
}

/// An open file.
struct File<'a, T: Nodes> {
    nodes: &'a mut T,
    node: T::Node,
    position: u64,
}

impl<T: Nodes> Read for File<'_, T> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.nodes.size(&self.node).saturating_sub(self.position);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        self.nodes.read_at(&self.node, self.position, &mut buf[..len])?;
        self.position += len as u64;
        Ok(len)
    }
}

impl<T: Nodes> Seek for File<'_, T> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = target(to, self.position, self.nodes.size(&self.node))?;
        Ok(self.position)
    }
}

/// Fills `buf` from the runs of a file: `run` tells the run at an offset of the file, `read` reads the image.
pub(crate) fn read_runs<T>(
    context: &mut T,
    offset: u64,
    buf: &mut [u8],
    mut run: impl FnMut(&mut T, u64) -> Result<Run, FsError>,
    mut read: impl FnMut(&mut T, u64, &mut [u8]) -> Result<(), FsError>,
) -> Result<(), FsError> {
    let mut done = 0;
    while done < buf.len() {
        let left = (buf.len() - done) as u64;
        let at = offset + done as u64;
        let len = match run(context, at)? {
            Run::Hole { len: 0 } | Run::Data { len: 0, .. } => {
                return Err(damaged(0, format!("nothing is known of byte {at} of a file")));
            }
            Run::Hole { len } => {
                let len = small(len.min(left));
                buf[done..done + len].fill(0);
                len
            }
            Run::Data { at, len } => {
                let len = small(len.min(left));
                read(context, at, &mut buf[done..done + len])?;
                len
            }
        };
        done += len;
    }
    Ok(())
}
