//! What the numbers in records of operators are called.

// Types of tasks that the host sends, by their names at level runtime.
pub(super) const AI_CORE: &str = "KERNEL_AICORE";
pub(super) const AI_CPU: &str = "KERNEL_AICPU";
pub(super) const VECTOR_CORE: &str = "KERNEL_AIVEC";
pub(super) const MIX_AIC: &str = "KERNEL_MIX_AIC";
pub(super) const MIX_AIV: &str = "KERNEL_MIX_AIV";
pub(super) const SIMT: &str = "KERNEL_SIMT";
pub(super) const FFTS_PLUS: &str = "FFTS_PLUS";

type Names = &'static [(u32, &'static str)];

/// A number's name, the number where it has none.
fn name(names: Names, number: u32) -> String {
    let mut found = names.iter().filter(|(known, _)| *known == number);
    match found.next() {
        Some((_, name)) => (*name).to_owned(),
        None => number.to_string(),
    }
}

/// Kind of a task in node_basic_info.
pub(super) fn task(number: u32) -> String {
    name(TASKS, number)
}

/// Type of a tensor's elements.
pub(super) fn data_type(number: u32) -> String {
    name(DATA_TYPES, number)
}

/// Format of a tensor: its low 8 bits, and a sub-format in the 16 above.
pub(super) fn format(number: u32) -> String {
    if number == u32::MAX {
        return name(FORMATS, number);
    }
    let sub = number >> 8 & 0xFFFF;
    match sub {
        0 => name(FORMATS, number & 0xFF),
        sub => format!("{}:{sub}", name(FORMATS, number & 0xFF)),
    }
}

const TASKS: Names = &[
    (0, "AI_CORE"),
    (1, "AI_CPU"),
    (2, "AI_VECTOR_CORE"),
    (3, "WRITE_BACK"),
    (4, "MIX_AIC"),
    (5, "MIX_AIV"),
    (6, "FFTS_PLUS"),
    (7, "DSA_SQE"),
    (8, "DVPP"),
    (9, "COMMUNICATION"),
    (10, "FUSION"),
    (11, "INVALID"),
    (256, "HCCL_AI_CPU"),
];

const DATA_TYPES: Names = &[
    (0, "FLOAT"),
    (1, "FLOAT16"),
    (2, "INT8"),
    (3, "INT32"),
    (4, "UINT8"),
    (6, "INT16"),
    (7, "UINT16"),
    (8, "UINT32"),
    (9, "INT64"),
    (10, "UINT64"),
    (11, "DOUBLE"),
    (12, "BOOL"),
    (13, "STRING"),
    (14, "DUAL_SUB_INT8"),
    (15, "DUAL_SUB_UINT8"),
    (16, "COMPLEX64"),
    (17, "COMPLEX128"),
    (18, "QINT8"),
    (19, "QINT16"),
    (20, "QINT32"),
    (21, "QUINT8"),
    (22, "QUINT16"),
    (23, "RESOURCE"),
    (24, "STRING_REF"),
    (25, "DUAL"),
    (26, "DT_VARIANT"),
    (27, "DT_BF16"),
    (28, "DT_UNDEFINED"),
    (29, "DT_INT4"),
    (30, "DT_UINT1"),
    (31, "DT_INT2"),
    (32, "DT_UINT2"),
    (33, "DT_COMPLEX32"),
    (34, "DT_HIFLOAT8"),
    (35, "DT_FLOAT8_E5M2"),
    (36, "DT_FLOAT8_E4M3FN"),
    (37, "DT_FLOAT8_E8M0"),
    (38, "DT_FLOAT6_E3M2"),
    (39, "DT_FLOAT6_E2M3"),
    (40, "DT_FLOAT4_E2M1"),
    (41, "DT_FLOAT4_E1M2"),
    (42, "DT_MAX"),
    (229, "NUMBER_TYPE_BEGIN_"),
    (230, "BOOL_"),
    (231, "INT_"),
    (232, "INT8_"),
    (233, "INT16_"),
    (234, "INT32_"),
    (235, "INT64_"),
    (236, "UINT_"),
    (237, "UINT8_"),
    (238, "UINT16_"),
    (239, "UINT32_"),
    (240, "UINT64_"),
    (241, "FLOAT_"),
    (242, "FLOAT16_"),
    (243, "FLOAT32_"),
    (244, "FLOAT64_"),
    (245, "COMPLEX_"),
    (246, "NUMBER_TYPE_END_"),
    (u32::MAX, "UNDEFINED"),
];

const FORMATS: Names = &[
    (0, "NCHW"),
    (1, "NHWC"),
    (2, "ND"),
    (3, "NC1HWC0"),
    (4, "FRACTAL_Z"),
    (5, "NC1C0HWPAD"),
    (6, "NHWC1C0"),
    (7, "FSR_NCHW"),
    (8, "FRACTAL_DECONV"),
    (9, "C1HWNC0"),
    (10, "FRACTAL_DECONV_TRANSPOSE"),
    (11, "FRACTAL_DECONV_SP_STRIDE_TRANS"),
    (12, "NC1HWC0_C04"),
    (13, "FRACTAL_Z_C04"),
    (14, "CHWN"),
    (15, "FRACTAL_DECONV_SP_STRIDE8_TRANS"),
    (16, "HWCN"),
    (17, "NC1KHKWHWC0"),
    (18, "BN_WEIGHT"),
    (19, "FILTER_HWCK"),
    (20, "HASHTABLE_LOOKUP_LOOKUPS"),
    (21, "HASHTABLE_LOOKUP_KEYS"),
    (22, "HASHTABLE_LOOKUP_VALUE"),
    (23, "HASHTABLE_LOOKUP_OUTPUT"),
    (24, "HASHTABLE_LOOKUP_HITS"),
    (25, "C1HWNCoC0"),
    (26, "MD"),
    (27, "NDHWC"),
    (28, "FRACTAL_ZZ"),
    (29, "FRACTAL_NZ"),
    (30, "NCDHW"),
    (31, "DHWCN"),
    (32, "NDC1HWC0"),
    (33, "FRACTAL_Z_3D"),
    (34, "CN"),
    (35, "NC"),
    (36, "DHWNC"),
    (37, "FRACTAL_Z_3D_TRANSPOSE"),
    (38, "FRACTAL_ZN_LSTM"),
    (39, "FRACTAL_Z_G"),
    (40, "RESERVED"),
    (41, "ALL"),
    (42, "NULL"),
    (43, "ND_RNN_BIAS"),
    (44, "FRACTAL_ZN_RNN"),
    (45, "END"),
    (47, "NCL"),
    (48, "FRACTAL_Z_WINO"),
    (49, "C1HWC0"),
    (50, "FRACTAL_NZ_C0_16"),
    (51, "FRACTAL_NZ_C0_32"),
    (52, "FRACTAL_NZ_C0_2"),
    (53, "FRACTAL_NZ_C0_4"),
    (54, "FRACTAL_NZ_C0_8"),
    (55, "END"),
    (200, "UNKNOWN_"),
    (201, "DEFAULT_"),
    (202, "NC1KHKWHWC0_"),
    (203, "ND_"),
    (204, "NCHW_"),
    (205, "NHWC_"),
    (206, "HWCN_"),
    (207, "NC1HWC0_"),
    (208, "FRAC_Z_"),
    (209, "C1HWNCOC0_"),
    (210, "FRAC_NZ_"),
    (211, "NC1HWC0_C04_"),
    (212, "FRACTAL_Z_C04_"),
    (213, "NDHWC_"),
    (214, "FRACTAL_ZN_LSTM_"),
    (215, "FRACTAL_ZN_RNN_"),
    (216, "ND_RNN_BIAS_"),
    (217, "NDC1HWC0_"),
    (218, "NCDHW_"),
    (219, "FRACTAL_Z_3D_"),
    (220, "DHWNC_"),
    (221, "DHWCN_"),
    (255, "MAX"),
    (u32::MAX, "UNDEFINED"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_name_are_their_own() {
        assert_eq!(task(256), "HCCL_AI_CPU");
        assert_eq!(task(77), "77");
        assert_eq!(data_type(1), "FLOAT16");
        assert_eq!(data_type(5), "5");
    }

    #[test]
    fn a_format_has_its_sub_format_behind_it() {
        assert_eq!(format(2), "ND");
        assert_eq!(format(4 | 16 << 8), "FRACTAL_Z:16");
        assert_eq!(format(0xFF00_0002), "ND");
        assert_eq!(format(u32::MAX), "UNDEFINED");
    }
}
