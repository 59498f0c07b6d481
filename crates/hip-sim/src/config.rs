//! The `HIPSIM_` environment variables: every one is read here, once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::fault::{self, Fault};
use crate::pace::Pace;
use crate::say;

/// Which driver answers direct storage requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ais {
    /// Alignment as the file wants it, and only of descriptors with `O_DIRECT`.
    New,
    /// 4 KiB alignment, whatever the file wants.
    Old,
    /// As [`Ais::Old`], and a read that ends early is an error.
    Oldest,
    /// A runtime that has the calls on a driver that does not know them.
    NoDriver,
    /// A runtime without the calls.
    Absent,
}

impl Ais {
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        Ok(match text {
            "new" => Self::New,
            "old" => Self::Old,
            "oldest" => Self::Oldest,
            "enotty" => Self::NoDriver,
            "absent" => Self::Absent,
            other => {
                return Err(format!(
                    "expected new, old, oldest, enotty or absent, found `{other}`"
                ));
            }
        })
    }
}

/// What the environment asks for.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) quiet: bool,
    pub(crate) version: i32,
    pub(crate) devices: usize,
    pub(crate) vram: usize,
    pub(crate) p2pmem: Vec<PathBuf>,
    pub(crate) pci: Vec<Address>,
    pub(crate) ais: Ais,
    pub(crate) copies: Pace,
    pub(crate) direct: Pace,
    pub(crate) wait_value: bool,
    faults: Vec<Fault>,
}

/// A PCI address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) domain: u32,
    pub(crate) bus: u8,
    pub(crate) slot: u8,
    pub(crate) function: u8,
}

/// The first HIP version with direct storage.
pub(crate) const AIS_VERSION: i32 = 70_200_000;

/// The configuration of this process. A variable that cannot be understood is said once and makes every call fail.
pub(crate) fn get() -> Result<&'static Config> {
    static CONFIG: OnceLock<std::result::Result<Config, String>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let config = from_environment();
        match &config {
            Ok(Config { quiet: true, .. }) => {}
            Ok(_) => say(format_args!(
                "this is a simulation of the HIP runtime, there is no GPU behind it (HIPSIM_QUIET=1 leaves this line out)"
            )),
            Err(why) => say(format_args!("{why}")),
        }
        config.map(|mut config| {
            fault::arm(std::mem::take(&mut config.faults));
            config
        })
    });
    config.as_ref().map_err(|_| Error::NOT_INITIALIZED)
}

fn from_environment() -> std::result::Result<Config, String> {
    let mut given = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("HIPSIM_")) else { continue };
        let value = value.into_string().map_err(|_| format!("{name}: not UTF-8"))?;
        given.insert(name.to_owned(), value);
    }
    read(given)
}

fn read(mut given: BTreeMap<String, String>) -> std::result::Result<Config, String> {
    let mut take = |name: &str| given.remove(name).filter(|value| !value.is_empty());
    let quiet = flag("HIPSIM_QUIET", take("HIPSIM_QUIET").as_deref(), false)?;
    let version = number("HIPSIM_VERSION", take("HIPSIM_VERSION"), AIS_VERSION, &i32::MAX)?;
    let devices = number("HIPSIM_DEVICES", take("HIPSIM_DEVICES"), 1_usize, &64)?;
    let vram = number("HIPSIM_VRAM_MIB", take("HIPSIM_VRAM_MIB"), 4096_usize, &(1 << 20))? << 20;
    let p2pmem = take("HIPSIM_P2PMEM").unwrap_or_default();
    let p2pmem = p2pmem.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    let pci = match take("HIPSIM_PCI") {
        Some(list) => list.split(',').map(address).collect::<std::result::Result<_, _>>()?,
        None => Vec::new(),
    };
    let ais = Ais::parse(&take("HIPSIM_AIS").unwrap_or_else(|| "new".to_owned()))
        .map_err(|why| format!("HIPSIM_AIS: {why}"))?;
    let mut pace = |gbps: &str, latency: &str| {
        let latency_us = number(latency, take(latency), 0_u64, &60_000_000)?;
        let gigabytes_per_second = number(gbps, take(gbps), 0.0_f64, &1e6)?;
        Ok::<_, String>(Pace { gigabytes_per_second, latency: Duration::from_micros(latency_us) })
    };
    let copies = pace("HIPSIM_COPY_GBPS", "HIPSIM_COPY_LATENCY_US")?;
    let direct = pace("HIPSIM_AIS_GBPS", "HIPSIM_AIS_LATENCY_US")?;
    let wait_value = flag("HIPSIM_WAIT_VALUE", take("HIPSIM_WAIT_VALUE").as_deref(), true)?;
    let faults = fault::parse(&take("HIPSIM_FAULT").unwrap_or_default())
        .map_err(|why| format!("HIPSIM_FAULT: {why}"))?;
    if let Some(name) = given.keys().find(|name| !given[*name].is_empty()) {
        return Err(format!("{name}: there is no such variable"));
    }
    let ais = if version < AIS_VERSION { Ais::Absent } else { ais };
    Ok(Config {
        quiet,
        version,
        devices,
        vram,
        p2pmem,
        pci,
        ais,
        copies,
        direct,
        wait_value,
        faults,
    })
}

fn flag(name: &str, value: Option<&str>, default: bool) -> std::result::Result<bool, String> {
    match value {
        None => Ok(default),
        Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(format!("{name}: expected 0 or 1, found `{other}`")),
    }
}

fn number<T>(
    name: &str,
    value: Option<String>,
    default: T,
    most: &T,
) -> std::result::Result<T, String>
where
    T: std::str::FromStr + PartialOrd + Default + std::fmt::Display,
{
    let Some(value) = value else { return Ok(default) };
    match value.parse() {
        Ok(number) if number >= T::default() && number <= *most => Ok(number),
        _ => Err(format!("{name}: expected a number from 0 to {most}, found `{value}`")),
    }
}

/// Reads `0000:03:00.0`.
fn address(text: &str) -> std::result::Result<Address, String> {
    let parse = || {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (slot, function) = rest.split_once('.')?;
        Some(Address {
            domain: u32::from_str_radix(domain, 16).ok()?,
            bus: u8::from_str_radix(bus, 16).ok()?,
            slot: u8::from_str_radix(slot, 16).ok()?,
            function: u8::from_str_radix(function, 16).ok()?,
        })
    };
    parse()
        .ok_or_else(|| format!("HIPSIM_PCI: expected an address like 0000:03:00.0, found `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(name: &str, value: &str) -> std::result::Result<Config, String> {
        read(BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn mistakes_are_named() {
        let error = |name, value| read_one(name, value).unwrap_err();
        assert_eq!(error("HIPSIM_DEVICE", "2"), "HIPSIM_DEVICE: there is no such variable");
        assert_eq!(
            error("HIPSIM_DEVICES", "-1"),
            "HIPSIM_DEVICES: expected a number from 0 to 64, found `-1`"
        );
        assert_eq!(error("HIPSIM_QUIET", "yes"), "HIPSIM_QUIET: expected 0 or 1, found `yes`");
        assert_eq!(
            error("HIPSIM_AIS", "none"),
            "HIPSIM_AIS: expected new, old, oldest, enotty or absent, found `none`"
        );
        assert_eq!(
            error("HIPSIM_PCI", "0000:03:00.0,4"),
            "HIPSIM_PCI: expected an address like 0000:03:00.0, found `4`"
        );
        assert!(error("HIPSIM_COPY_GBPS", "NaN").starts_with("HIPSIM_COPY_GBPS: expected"));
    }

    #[test]
    fn an_empty_variable_is_as_good_as_none() {
        assert_eq!(read_one("HIPSIM_DEVICES", "").unwrap().devices, 1);
    }

    #[test]
    fn a_version_before_direct_storage_has_none() {
        assert_eq!(read_one("HIPSIM_VERSION", "70100000").unwrap().ais, Ais::Absent);
        assert_eq!(read_one("HIPSIM_VERSION", "70200000").unwrap().ais, Ais::New);
    }
}
