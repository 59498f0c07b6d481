//! `fastpath snapshot`.

use crate::args::SnapshotArgs;

pub(crate) fn run(_args: &SnapshotArgs) -> anyhow::Result<u8> {
    anyhow::bail!("not yet")
}
