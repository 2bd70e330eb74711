//! A value that proves that the processor has AVX2, so that code compiled for it can be called safely.

/// Whether AVX2 is used.
pub(crate) trait Registers: Copy {
    const WIDE: bool;
}

/// The processor has AVX2, and instructions that find and count bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide(());

/// No assumption on the processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl Registers for Wide {
    const WIDE: bool = true;
}

impl Registers for Plain {
    const WIDE: bool = false;
}

impl Wide {
    /// Detects the processor's features.
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
