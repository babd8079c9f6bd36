// Expands the rows of defs/*.def for the includer, which defines one of
//   FX_METHODS    inside class Tensor: the methods
//   FX_FUNCTIONS  free functions
//   FX_RECORDS    extern declarations of the records
//   FX_STUBS      definitions of methods and functions
//   FX_TABLE      addresses of the records
// and, to expand one family alone, FX_FAMILY_FILE. No include guard: included many times on
// purpose.
//
// A row is FX_<forms>(record, C++ name, (parameters after self), (arguments after self)). Forms: F
// new results (method and free function), I in place (name_), O out= (name_out, free). A digit is
// the size of a returned tuple, V a vector. G: free function without self. M: method only, whose
// arguments say *this. GI: free function in place on a self before the parameters. GO: G and its
// out=. R: a record without a C++ name. FX_DEF(x) is "= x" in declarations only.
#define FX_LIST(...) __VA_ARGS__
#define FX_SELF(...) (const Tensor& self __VA_OPT__(, ) __VA_ARGS__)
#define FX_SELF_INPLACE(...) (Tensor & self __VA_OPT__(, ) __VA_ARGS__)
#define FX_OUT(...) (Tensor & out, const Tensor& self __VA_OPT__(, ) __VA_ARGS__)
#define FX_OUT_ONLY(...) (Tensor & out __VA_OPT__(, ) __VA_ARGS__)
#define FX_WITH_SELF(...) \
  { self __VA_OPT__(, ) __VA_ARGS__ }
#define FX_WITH_THIS(...) \
  { *this __VA_OPT__(, ) __VA_ARGS__ }
#define FX_ONLY(...) \
  { __VA_ARGS__ }

#if defined(FX_METHODS)
#define FX_DEF(...) = __VA_ARGS__
#define FX_F(op, name, sig, args) Tensor name sig const;
#define FX_F2(op, name, sig, args) std::tuple<Tensor, Tensor> name sig const;
#define FX_F3(op, name, sig, args) std::tuple<Tensor, Tensor, Tensor> name sig const;
#define FX_FV(op, name, sig, args) std::vector<Tensor> name sig const;
#define FX_I(op, name, sig, args) Tensor& name##_ sig const;
#define FX_O(op, name, sig, args)
#define FX_G(op, name, sig, args)
#define FX_G2(op, name, sig, args)
#define FX_G3(op, name, sig, args)
#define FX_GV(op, name, sig, args)
#define FX_M(op, name, sig, args) Tensor name sig const;
#define FX_GI(op, name, sig, args)
#define FX_OO(op, name, sig, args)
#define FX_R(op)
#elif defined(FX_FUNCTIONS)
#define FX_DEF(...) = __VA_ARGS__
#define FX_F(op, name, sig, args) Tensor name FX_SELF sig;
#define FX_F2(op, name, sig, args) std::tuple<Tensor, Tensor> name FX_SELF sig;
#define FX_F3(op, name, sig, args) std::tuple<Tensor, Tensor, Tensor> name FX_SELF sig;
#define FX_FV(op, name, sig, args) std::vector<Tensor> name FX_SELF sig;
#define FX_I(op, name, sig, args) Tensor& name##_ FX_SELF_INPLACE sig;
#define FX_O(op, name, sig, args) Tensor& name##_out FX_OUT sig;
#define FX_G(op, name, sig, args) Tensor name sig;
#define FX_G2(op, name, sig, args) std::tuple<Tensor, Tensor> name sig;
#define FX_G3(op, name, sig, args) std::tuple<Tensor, Tensor, Tensor> name sig;
#define FX_GV(op, name, sig, args) std::vector<Tensor> name sig;
#define FX_M(op, name, sig, args)
#define FX_GI(op, name, sig, args) Tensor& name##_ FX_SELF_INPLACE sig;
#define FX_OO(op, name, sig, args) Tensor& name##_out FX_OUT_ONLY sig;
#define FX_R(op)
#elif defined(FX_RECORDS)
#define FX_DEF(...)
#define FX_F(op, name, sig, args) extern const Op op##_op;
#define FX_F2(op, name, sig, args) extern const Op op##_op;
#define FX_F3(op, name, sig, args) extern const Op op##_op;
#define FX_FV(op, name, sig, args) extern const Op op##_op;
#define FX_I(op, name, sig, args) extern const Op op##_op;
#define FX_O(op, name, sig, args) extern const Op op##_op;
#define FX_G(op, name, sig, args) extern const Op op##_op;
#define FX_G2(op, name, sig, args) extern const Op op##_op;
#define FX_G3(op, name, sig, args) extern const Op op##_op;
#define FX_GV(op, name, sig, args) extern const Op op##_op;
#define FX_M(op, name, sig, args) extern const Op op##_op;
#define FX_GI(op, name, sig, args) extern const Op op##_op;
#define FX_OO(op, name, sig, args) extern const Op op##_op;
#define FX_R(op) extern const Op op##_op;
#elif defined(FX_TABLE)
#define FX_DEF(...)
#define FX_F(op, name, sig, args) &op##_op,
#define FX_F2(op, name, sig, args) &op##_op,
#define FX_F3(op, name, sig, args) &op##_op,
#define FX_FV(op, name, sig, args) &op##_op,
#define FX_I(op, name, sig, args) &op##_op,
#define FX_O(op, name, sig, args) &op##_op,
#define FX_G(op, name, sig, args) &op##_op,
#define FX_G2(op, name, sig, args) &op##_op,
#define FX_G3(op, name, sig, args) &op##_op,
#define FX_GV(op, name, sig, args) &op##_op,
#define FX_M(op, name, sig, args) &op##_op,
#define FX_GI(op, name, sig, args) &op##_op,
#define FX_OO(op, name, sig, args) &op##_op,
#define FX_R(op) &op##_op,
#elif defined(FX_STUBS)
#define FX_DEF(...)
#define FX_F(op, name, sig, args)                                       \
  Tensor name FX_SELF sig { return call1(op##_op, FX_WITH_SELF args); } \
  Tensor Tensor::name sig const { return call1(op##_op, FX_WITH_THIS args); }
#define FX_F2(op, name, sig, args)                            \
  std::tuple<Tensor, Tensor> name FX_SELF sig {               \
    Tensors r = call(op##_op, Form::kNew, FX_WITH_SELF args); \
    return {std::move(r[0]), std::move(r[1])};                \
  }                                                           \
  std::tuple<Tensor, Tensor> Tensor::name sig const {         \
    Tensors r = call(op##_op, Form::kNew, FX_WITH_THIS args); \
    return {std::move(r[0]), std::move(r[1])};                \
  }
#define FX_F3(op, name, sig, args)                              \
  std::tuple<Tensor, Tensor, Tensor> name FX_SELF sig {         \
    Tensors r = call(op##_op, Form::kNew, FX_WITH_SELF args);   \
    return {std::move(r[0]), std::move(r[1]), std::move(r[2])}; \
  }                                                             \
  std::tuple<Tensor, Tensor, Tensor> Tensor::name sig const {   \
    Tensors r = call(op##_op, Form::kNew, FX_WITH_THIS args);   \
    return {std::move(r[0]), std::move(r[1]), std::move(r[2])}; \
  }
#define FX_FV(op, name, sig, args)                            \
  std::vector<Tensor> name FX_SELF sig {                      \
    Tensors r = call(op##_op, Form::kNew, FX_WITH_SELF args); \
    return std::vector<Tensor>(r.begin(), r.end());           \
  }                                                           \
  std::vector<Tensor> Tensor::name sig const {                \
    Tensors r = call(op##_op, Form::kNew, FX_WITH_THIS args); \
    return std::vector<Tensor>(r.begin(), r.end());           \
  }
#define FX_I(op, name, sig, args)             \
  Tensor& name##_ FX_SELF_INPLACE sig {       \
    call_inplace(op##_op, FX_WITH_SELF args); \
    return self;                              \
  }                                           \
  Tensor& Tensor::name##_ sig const {         \
    call_inplace(op##_op, FX_WITH_THIS args); \
    return const_cast<Tensor&>(*this);        \
  }
#define FX_O(op, name, sig, args)                \
  Tensor& name##_out FX_OUT sig {                \
    call_out(op##_op, FX_WITH_SELF args, {out}); \
    return out;                                  \
  }
#define FX_G(op, name, sig, args) \
  Tensor name sig { return call1(op##_op, FX_ONLY args); }
#define FX_G2(op, name, sig, args)                       \
  std::tuple<Tensor, Tensor> name sig {                  \
    Tensors r = call(op##_op, Form::kNew, FX_ONLY args); \
    return {std::move(r[0]), std::move(r[1])};           \
  }
#define FX_G3(op, name, sig, args)                              \
  std::tuple<Tensor, Tensor, Tensor> name sig {                 \
    Tensors r = call(op##_op, Form::kNew, FX_ONLY args);        \
    return {std::move(r[0]), std::move(r[1]), std::move(r[2])}; \
  }
#define FX_GV(op, name, sig, args)                       \
  std::vector<Tensor> name sig {                         \
    Tensors r = call(op##_op, Form::kNew, FX_ONLY args); \
    return std::vector<Tensor>(r.begin(), r.end());      \
  }
#define FX_M(op, name, sig, args) \
  Tensor Tensor::name sig const { return call1(op##_op, FX_ONLY args); }
#define FX_GI(op, name, sig, args)            \
  Tensor& name##_ FX_SELF_INPLACE sig {       \
    call_inplace(op##_op, FX_WITH_SELF args); \
    return self;                              \
  }
#define FX_OO(op, name, sig, args)          \
  Tensor& name##_out FX_OUT_ONLY sig {      \
    call_out(op##_op, FX_ONLY args, {out}); \
    return out;                             \
  }
#define FX_R(op)
#endif
#define FX_GO(op, name, sig, args) FX_G(op, name, sig, args) FX_OO(op, name, sig, args)
#define FX_FI(op, name, sig, args) FX_F(op, name, sig, args) FX_I(op, name, sig, args)
#define FX_FO(op, name, sig, args) FX_F(op, name, sig, args) FX_O(op, name, sig, args)
#define FX_FIO(op, name, sig, args) \
  FX_F(op, name, sig, args) FX_I(op, name, sig, args) FX_O(op, name, sig, args)

#if defined(FX_FAMILY_FILE)
#include FX_FAMILY_FILE
#else
#include "fornax/ops/ops.def"
#endif

#undef FX_LIST
#undef FX_SELF
#undef FX_SELF_INPLACE
#undef FX_OUT
#undef FX_OUT_ONLY
#undef FX_WITH_SELF
#undef FX_WITH_THIS
#undef FX_ONLY
#undef FX_DEF
#undef FX_F
#undef FX_F2
#undef FX_F3
#undef FX_FV
#undef FX_I
#undef FX_O
#undef FX_G
#undef FX_G2
#undef FX_G3
#undef FX_GV
#undef FX_M
#undef FX_GI
#undef FX_OO
#undef FX_GO
#undef FX_R
#undef FX_FI
#undef FX_FO
#undef FX_FIO
