//! Proof that the processor has wide registers: what is compiled for them runs only where there is one.

/// Whether wide registers are used.
pub(crate) trait Registers: Copy {
    const WIDE: bool;
}

/// The processor has AVX2, and instructions that find and count bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide(());

/// Nothing is known of the processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl Registers for Wide {
    const WIDE: bool = true;
}

impl Registers for Plain {
    const WIDE: bool = false;
}

impl Wide {
    /// Asks the processor.
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
