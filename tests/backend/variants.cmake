# What older CPUs and other makers' do: AVX2 has neither bf16 nor f16 in oneDNN, AVX512_CORE_BF16
# no f16; v3 runs our own kernels without AVX-512.
fornax_test_variant(backend onednn_avx2 ONEDNN_MAX_CPU_ISA=AVX2)
fornax_test_variant(backend onednn_avx512_bf16 ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)
fornax_test_variant(backend isa_v3 FORNAX_ISA=v3)
