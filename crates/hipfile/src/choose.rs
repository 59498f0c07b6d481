//! Which way one request goes, and why not the fastpath.

use fastpath_gpu::MemoryKind;

use crate::error::Error;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $variant:ident = $word:literal, $text:literal;)*) => {
        /// Why a request did not take the fastpath, or failed on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of their numbers, which never change.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// A stable word.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// What `fastpath explain` knows it by.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => concat!("request-", $word),)* }
            }

            /// A sentence without its period.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// The user wants it so.
    Forced = "forced", "HIPFILE_FORCE_COMPAT_MODE is set";
    /// A blocking advisory marks the kernel.
    Advisory = "advisory", "an advisory says that the fastpath corrupts data on this kernel";
    /// The kernel lacks the option.
    Kernel = "kernel", "the kernel is built without CONFIG_PCI_P2PDMA";
    /// A file that may hold advisories could not be read.
    Knowledge = "knowledge", "a knowledge file cannot be read, and it may hold an advisory";
    /// HIP lacks the functions.
    NoInterface = "no-interface", "the HIP runtime has no hipAmdFileRead and hipAmdFileWrite";
    /// The driver does not know the request.
    NoDriver = "no-driver", "the amdgpu driver does not know direct storage requests (ENOTTY)";
    /// The GPU is an SR-IOV virtual function.
    VirtualFunction = "virtual-function", "the GPU is an SR-IOV virtual function";
    /// Neither a regular file nor a block device.
    FileType = "file-type", "the file is neither a regular file nor a block device";
    /// Neither XFS nor ext4.
    FileSystem = "file-system", "the file system is neither xfs nor ext4";
    /// ext4, but its data is journaled or not ordered.
    JournalMode = "journal-mode", "ext4 is mounted with a journal mode other than data=ordered";
    /// It cannot be opened with `O_DIRECT`.
    NoDirectIo = "no-direct-io", "the file cannot be opened with O_DIRECT";
    /// Direct writes know no end of file to append to.
    Append = "append", "the file is open with O_APPEND";
    /// Not memory of a GPU.
    MemoryType = "memory-type", "the buffer is not GPU memory";
    /// The file offset does not fit the file's direct I/O.
    OffsetAlignment = "offset-alignment", "the file offset is not a multiple of the direct I/O alignment";
    /// The size does not.
    SizeAlignment = "size-alignment", "the size is not a multiple of the direct I/O alignment";
    /// The address does not.
    AddressAlignment = "address-alignment", "the buffer's address is not a multiple of the memory alignment";
    /// The driver refused a request that was aligned as the file asks, so it wants pages.
    PageAlignment = "page-alignment", "the driver takes only 4 KiB aligned requests";
    /// `ENODEV`.
    Unreachable = "unreachable", "no PCIe peer-to-peer path between the drive and the GPU (ENODEV)";
    /// `EREMOTEIO`.
    RemoteIo = "remote-io", "the drive or the path to it failed (EREMOTEIO)";
    /// `EINVAL`.
    Refused = "refused", "the driver refused the request (EINVAL)";
    /// `EOPNOTSUPP`.
    NotSupported = "not-supported", "the file does not support it (EOPNOTSUPP)";
    /// `ENOMEM`.
    OutOfMemory = "out-of-memory", "the driver has no memory for the request (ENOMEM)";
    /// Any other errno: the request failed, and was not tried again.
    Failed = "failed", "the transfer failed";
    /// HIP failed before the driver was asked.
    Hip = "hip", "HIP failed before it asked the driver";
    /// The program wants it so.
    Parameter = "parameter", "the program has set the parameter UsePcip2pdma to false";
}

impl Reason {
    /// Whether another offset, size or address would have done.
    pub const fn is_alignment(self) -> bool {
        matches!(
            self,
            Self::OffsetAlignment
                | Self::SizeAlignment
                | Self::AddressAlignment
                | Self::PageAlignment
        )
    }
}

/// A number of reasons that can be counted each.
pub(crate) const REASONS: usize = Reason::ALL.len();

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Drive to GPU.
    Fastpath,
    /// Through host memory.
    Fallback(Reason),
    /// The buffer is host memory: nothing but a system call.
    Host(Reason),
}

/// What decides, of the file, the memory and the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Why no request for this file and GPU can take the fastpath.
    pub(crate) refused: Option<Reason>,
    /// What file offset and size must be a multiple of; a power of two.
    pub(crate) offset_align: u64,
    /// What the address must be a multiple of.
    pub(crate) memory_align: u64,
    /// Whether these are what the driver taught, not what the file says.
    pub(crate) learned: bool,
    pub(crate) kind: MemoryKind,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) file_offset: u64,
}

impl Candidate {
    /// Why it cannot take the fastpath.
    fn refusal(&self) -> Option<Reason> {
        let unaligned = |value: u64, align: u64| value & (align.wrapping_sub(1)) != 0;
        let taught = |reason: Reason| if self.learned { Reason::PageAlignment } else { reason };
        if self.kind != MemoryKind::Device {
            Some(Reason::MemoryType)
        } else if self.refused.is_some() {
            self.refused
        } else if unaligned(self.file_offset, self.offset_align) {
            Some(taught(Reason::OffsetAlignment))
        } else if unaligned(self.size, self.offset_align) {
            Some(taught(Reason::SizeAlignment))
        } else if unaligned(self.address, self.memory_align) {
            Some(taught(Reason::AddressAlignment))
        } else {
            None
        }
    }

    /// The way, if there is one.
    pub(crate) fn choose(&self, allow_fallback: bool) -> Result<Way, Error> {
        match self.refusal() {
            None => Ok(Way::Fastpath),
            Some(reason) if self.kind.is_host_accessible() => Ok(Way::Host(reason)),
            Some(reason) if !allow_fallback => Err(Error::AllRefused(reason)),
            Some(reason) => Ok(Way::Fallback(reason)),
        }
    }
}
