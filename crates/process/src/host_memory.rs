//! The memory of the computer, as the kernel tells.

use std::fs;
use std::io;

/// The memory of the computer at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// All of it, in bytes.
    pub total: u64,
    /// The part that new programs can take without others being moved out, in bytes.
    pub available: u64,
    /// The part of the last ten seconds in which some program stood still for want of memory, in hundredths of a percent. None
    /// where the kernel does not count that.
    pub stalled: Option<u32>,
}

impl HostMemory {
    /// Reads it: two small files, in some ten microseconds.
    ///
    /// # Errors
    /// Why the kernel does not tell.
    pub fn read() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/meminfo")?;
        let other = || io::Error::new(io::ErrorKind::InvalidData, "`meminfo` has another form");
        let (total, available) = of_meminfo(&text).ok_or_else(other)?;
        let pressure = fs::read_to_string("/proc/pressure/memory").ok();
        Ok(Self { total, available, stalled: pressure.as_deref().and_then(some_avg10) })
    }
}

/// Returns all of the memory and what is available, in bytes.
fn of_meminfo(text: &str) -> Option<(u64, u64)> {
    let find = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        kib.checked_mul(1024)
    };
    Some((find("MemTotal")?, find("MemAvailable")?))
}

/// Returns the number behind `avg10` of the line `some`, in hundredths: the kernel writes two decimals.
fn some_avg10(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let number = line.split(' ').find_map(|part| part.strip_prefix("avg10="))?;
    let (whole, hundredths) = number.split_once('.').filter(|(_, part)| part.len() == 2)?;
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(hundredths.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        let check = |text: &str, expected| assert_eq!(of_meminfo(text), expected, "{text}");
        let whole =
            "MemTotal:       24684544 kB\nMemFree:  5286256 kB\nMemAvailable:   23580672 kB\n";
        check(whole, Some((24_684_544 << 10, 23_580_672 << 10)));
        check("MemTotal:       24684544 kB\n", None);
        check("MemTotal: 1\nMemAvailable: 2 kB\n", None);
        check("", None);
        let check = |text: &str, expected| assert_eq!(some_avg10(text), expected, "{text}");
        let line = "some avg10=20.01 avg60=0.02 avg300=0.41 total=15751734";
        check(line, Some(2_001));
        check(&format!("full avg10=99.00 total=1\n{line}"), Some(2_001));
        check("some avg10=100.00 total=1", Some(10_000));
        check("some avg10=0.00 total=1", Some(0));
        check("full avg10=1.00 total=1", None);
        check("some avg10=1 total=1", None);
        check("", None);
    }

    #[test]
    fn this_computer_has_memory() {
        let memory = HostMemory::read().expect("the kernel tells");
        assert!(memory.available > 0 && memory.available <= memory.total, "{memory:?}");
    }
}
