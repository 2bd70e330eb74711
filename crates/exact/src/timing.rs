//! How the clock of a guest advances.
//!
//! The exact arena counts instructions. The arena `vm` runs the same guests in real time: under KVM, on the
//! processors of this machine, or in plain emulation, whose times say nothing about a real machine.

/// How the clock of a guest advances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// By instructions: each takes one nanosecond.
    #[default]
    Counted,
    /// In real time, with instructions executed by the processor.
    Kvm,
    /// In real time, with instructions executed by an emulator at its own speed.
    Emulated,
}

/// CPU model under KVM: the one of this machine.
pub const CPU_OF_HOST: &str = "host";

/// Boot arguments for a clock that counts instructions.
const COUNTED_CLOCK: &str = "tsc=reliable clocksource=tsc tsc_early_khz=1000000 ";

impl Timing {
    /// Returns true if the guest's clock runs in real time.
    pub const fn is_real(self) -> bool {
        !matches!(self, Self::Counted)
    }

    /// Returns the arguments of the emulator that choose the accelerator and the clock.
    pub fn arguments(self, cpu: &str) -> Vec<String> {
        let all: &[&str] = match self {
            Self::Counted => &[
                "-accel",
                "tcg,tb-size=512",
                "-icount",
                "shift=0,sleep=off",
                "-cpu",
                cpu,
            ],
            Self::Kvm => &["-accel", "kvm", "-cpu", CPU_OF_HOST],
            Self::Emulated => &["-accel", "tcg,thread=multi,tb-size=512", "-cpu", cpu],
        };
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Returns the boot arguments `all`. For a clock in real time, leaves out those for a clock that counts
    /// instructions.
    pub fn boot_arguments(self, all: &str) -> String {
        match self {
            Self::Counted => all.to_owned(),
            _ => all.replace(COUNTED_CLOCK, ""),
        }
    }

    /// Returns the name of the CPU model for the record.
    pub const fn cpu(self, emulated: &'static str) -> &'static str {
        match self {
            Self::Kvm => CPU_OF_HOST,
            _ => emulated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_counted_clock_has_its_arguments() {
        let all = format!("quiet {COUNTED_CLOCK}rootfstype=ramfs");
        assert_eq!(Timing::Counted.boot_arguments(&all), all);
        assert_eq!(Timing::Kvm.boot_arguments(&all), "quiet rootfstype=ramfs");
        let has = |timing: Timing, word: &str| {
            timing
                .arguments("max")
                .iter()
                .any(|argument| argument.contains(word))
        };
        assert!(has(Timing::Counted, "icount") && !has(Timing::Emulated, "icount"));
        assert!(has(Timing::Kvm, "host") && !has(Timing::Kvm, "max"));
    }
}
