//! The best route from a GPU to a volume.

use std::collections::HashMap;

use fastpath_host::pci::Address;

use crate::driver::DriverVerdict;
use crate::path::PathsVerdict;
use crate::volume::VolumesVerdict;
use crate::words::{Layer, Reason, Verdict};

/// One GPU together with one volume, or with one drive where volumes are not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The GPU; `None` if there is none, or none was judged.
    pub gpu: Option<Address>,
    /// The volume's mount point; `None` if there is none, or none was judged.
    pub mount: Option<String>,
    /// The drives below the volume.
    pub drives: Vec<Address>,
    /// The worst of its GPU's, its paths' and its volume's.
    pub verdict: Verdict,
    /// The first layer that is as bad as that.
    pub layer: Layer,
    /// Why.
    pub reason: Reason,
}

/// What one layer says of one part of a route.
type Part = (Layer, Verdict, Reason);

/// The best route that the judged layers allow: the first one with the least bad verdict, and of those the one that the fewest
/// layers stop. `None` if none of the three was judged.
pub(crate) fn best(
    driver: Option<&DriverVerdict>,
    paths: Option<&PathsVerdict>,
    volumes: Option<&VolumesVerdict>,
) -> Option<Route> {
    let known: HashMap<(&Address, &Address), (Verdict, Reason)> = paths
        .iter()
        .flat_map(|paths| &paths.paths)
        .map(|path| ((&path.gpu, &path.nvme), (path.verdict, path.reason)))
        .collect();
    let ends = ends(paths, volumes);
    let mut best: Option<(Route, u32)> = None;
    for (gpu, of_driver) in gpus(driver, paths) {
        for end in &ends {
            let on_the_way = end.drives.iter().filter_map(|drive| {
                let (verdict, reason) = known.get(&(gpu?, drive))?;
                Some((Layer::Path, *verdict, *reason))
            });
            let path = on_the_way.max_by_key(|part| part.1.badness());
            let parts = of_driver.into_iter().chain(path).chain(end.part);
            let parts: Vec<Part> = parts.chain(end.no_path.filter(|_| path.is_none())).collect();
            let stopped = parts.iter().filter(|part| part.1 != Verdict::Supported).count();
            let Some(worst) = worst(&parts) else { continue };
            let rank = (worst.1.badness(), stopped);
            let better = best.as_ref().is_none_or(|(route, count)| {
                rank < (route.verdict.badness(), usize::try_from(*count).unwrap_or(usize::MAX))
            });
            if better {
                let route = Route {
                    gpu: gpu.cloned(),
                    mount: end.mount.map(str::to_owned),
                    drives: end.drives.to_vec(),
                    verdict: worst.1,
                    layer: worst.0,
                    reason: worst.2,
                };
                best = Some((route, u32::try_from(stopped).unwrap_or(u32::MAX)));
            }
        }
    }
    best.map(|(route, _)| route)
}

/// The first of the worst.
fn worst(parts: &[Part]) -> Option<Part> {
    let most = parts.iter().map(|part| part.1.badness()).max()?;
    parts.iter().copied().find(|part| part.1.badness() == most)
}

/// Every GPU and what the driver layer says of it; one entry without a GPU if there is none.
fn gpus<'a>(
    driver: Option<&'a DriverVerdict>,
    paths: Option<&'a PathsVerdict>,
) -> Vec<(Option<&'a Address>, Option<Part>)> {
    if let Some(driver) = driver {
        let part = |verdict, reason| Some((Layer::Driver, verdict, reason));
        if driver.gpus.is_empty() {
            return vec![(None, part(driver.verdict, driver.reason))];
        }
        let gpus = driver.gpus.iter();
        return gpus.map(|gpu| (Some(&gpu.gpu), part(gpu.verdict, gpu.reason))).collect();
    }
    let mut gpus: Vec<&Address> =
        paths.iter().flat_map(|paths| &paths.paths).map(|path| &path.gpu).collect();
    gpus.dedup();
    if gpus.is_empty() {
        return vec![(None, None)];
    }
    gpus.into_iter().map(|gpu| (Some(gpu), None)).collect()
}

/// Where a route ends.
struct End<'a> {
    mount: Option<&'a str>,
    drives: &'a [Address],
    part: Option<Part>,
    /// What the path layer says as a whole, where it has no path for a GPU and these drives.
    no_path: Option<Part>,
}

fn ends<'a>(paths: Option<&'a PathsVerdict>, volumes: Option<&'a VolumesVerdict>) -> Vec<End<'a>> {
    let whole = paths.filter(|paths| paths.paths.is_empty());
    let no_path = whole.map(|paths| (Layer::Path, paths.verdict, paths.reason));
    match volumes {
        Some(volumes) if volumes.volumes.is_empty() => {
            let part = Some((Layer::Volume, volumes.verdict, volumes.reason));
            vec![End { mount: None, drives: &[], part, no_path }]
        }
        Some(volumes) => {
            let of = |volume: &'a crate::volume::VolumeVerdict| End {
                mount: Some(&volume.mount),
                drives: &volume.leaves,
                part: Some((Layer::Volume, volume.verdict, volume.reason)),
                no_path,
            };
            volumes.volumes.iter().map(of).collect()
        }
        None => match paths {
            Some(paths) if !paths.paths.is_empty() => {
                let mut drives: Vec<&'a Address> =
                    paths.paths.iter().map(|path| &path.nvme).collect();
                drives.sort();
                drives.dedup();
                let of = |drive: &'a Address| End {
                    mount: None,
                    drives: std::slice::from_ref(drive),
                    part: None,
                    no_path: None,
                };
                drives.into_iter().map(of).collect()
            }
            _ => vec![End { mount: None, drives: &[], part: None, no_path }],
        },
    }
}
