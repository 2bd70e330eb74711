//! Proof, as a value, that the processor has AVX2, so that code compiled for AVX2 can be called safely.

/// Whether code may use AVX2, decided at compile time by the type.
pub(crate) trait Registers: Copy {
    const WIDE: bool;
}

/// Proof that the processor has AVX2 and the instructions that find and count bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide(());

/// Only instructions that every x86-64 processor has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl Registers for Wide {
    const WIDE: bool = true;
}

impl Registers for Plain {
    const WIDE: bool = false;
}

impl Wide {
    /// Returns the proof if the processor has AVX2, BMI1, BMI2, LZCNT and POPCNT, otherwise `None`.
    #[inline]
    pub fn at_hand() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            return Some(Self(()));
        }
        None
    }
}
