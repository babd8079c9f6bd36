#include "tools/fornax/commands.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "fornax/base/cpu_info.h"
#include "fornax/base/isa.h"
#include "fornax/base/startup.h"
#include "fornax/base/threads.h"
#include "fornax/base/version.h"
#include "fornax/core/op.h"
#include "fornax/serialize/npy.h"
#include "fornax/serialize/npz.h"
#include "fornax/serialize/safetensors.h"

namespace fornax::tool {
namespace {

// Which rules a record has, or what stands in for them.
struct Rules {
  const char *vjp, *jvp, *vmap;
};

Rules rules_of(const Op& op) {
  bool composite = op.kind == OpKind::kComposite && op.body;
  Rules r;
  r.vjp = op.is(kNoGrad)             ? "none"
          : op.vjp                   ? "rule"
          : op.kind == OpKind::kView ? "step"
          : composite                ? "body"
                                     : "missing";
  bool tangents = op.is(kLinearOp) || op.kind == OpKind::kView;
  r.jvp = op.is(kNoGrad) ? "none"
          : op.jvp       ? "rule"
          : tangents     ? "linear"
          : op.body      ? "body"
          : op.vjp       ? "vjp twice"
                         : "missing";
  r.vmap = op.vmap ? "rule" : op.body ? "body" : "loop";
  return r;
}

const char* kind_of(const Op& op) {
  switch (op.kind) {
    case OpKind::kPointwise: return "pointwise";
    case OpKind::kReduction: return "reduction";
    case OpKind::kView: return "view";
    case OpKind::kComposite: return "composite";
    case OpKind::kOpaque: return "opaque";
    case OpKind::kQuery: return "query";
  }
  return "";
}

bool has_cpu_kernel(const Op& op) { return op.kernels[int(kCPU)].fn != nullptr; }

void print_one(const Op& op) {
  Rules r = rules_of(op);
  std::printf("%.*s\n  %.*s\n  %s; gradient: %s; tangent: %s; batching: %s; kernel: %s\n",
              int(op.schema.size()), op.schema.data(), int(op.doc.size()), op.doc.data(),
              kind_of(op), r.vjp, r.jvp, r.vmap, has_cpu_kernel(op) ? "cpu" : "none");
}

void print_markdown(const Op& op) {
  Rules r = rules_of(op);
  std::printf(
      "### %.*s\n\n%.*s\n\n```\n%.*s\n```\n\n%s · gradient: %s · tangent: %s · batching: %s · "
      "kernel: %s\n\n",
      int(op.name().size()), op.name().data(), int(op.doc.size()), op.doc.data(),
      int(op.schema.size()), op.schema.data(), kind_of(op), r.vjp, r.jvp, r.vmap,
      has_cpu_kernel(op) ? "cpu" : "none");
}

template <class T>
void accumulate(const std::byte* data, size_t i, double& value) {
  T x;
  std::memcpy(&x, data + i * sizeof(T), sizeof(T));
  if constexpr (requires { x.im; })
    value = std::hypot(double(x.re), double(x.im));
  else
    value = double(x);
}

void print_tensor(const RawTensor& t) {
  double least = INFINITY, most = -INFINITY, sum = 0;
  size_t n = t.bytes.size() / size_t(size_of(t.dtype)), bad = 0;
  for (size_t i = 0; i < n; ++i) {
    double v = 0;
    switch (t.dtype) {
#define X(type, name, torch, short_name, long_name) \
  case Dtype::name: accumulate<type>(t.bytes.data(), i, v); break;
      FX_DTYPES(X)
#undef X
      default: break;
    }
    if (!std::isfinite(v)) {
      ++bad;
      continue;
    }
    least = std::fmin(least, v);
    most = std::fmax(most, v);
    sum += v;
  }
  std::string sizes = str(IntArrayRef(t.sizes));
  std::printf("%-40s %-10s %-20s", t.name.c_str(), str(t.dtype).c_str(), sizes.c_str());
  if (n > bad)
    std::printf(" min %-12.6g max %-12.6g mean %-12.6g", least, most, sum / double(n - bad));
  if (bad) std::printf(" %zu not finite", bad);
  std::printf("\n");
}

bool ends_with(const std::string& s, const char* tail) {
  size_t n = std::strlen(tail);
  return s.size() >= n && s.compare(s.size() - n, n, tail) == 0;
}

}  // namespace

void print_info() {
  std::printf("fornax %s\n", kVersion);
  std::printf("cpu        %s, %d usable\n", cpu_name().c_str(), cpu_count());
  std::printf("features   %s\n", cpu_features().c_str());
  std::printf("kernel set %s (the CPU has %s)\n", name_of(active_isa()), name_of(cpu_isa()));
  std::printf("threads    %d\n", get_num_threads());
  std::printf("operators  %zu\n", op_table().size());
  std::printf("libraries  %s\n", library_versions().c_str());
}

int print_ops(const std::string& name, bool markdown) {
  startup();
  if (!name.empty()) {
    const Op* op = find_op(name);
    if (!op) {
      std::fprintf(stderr, "fornax ops: no operator named '%s'\n", name.c_str());
      return 1;
    }
    markdown ? print_markdown(*op) : print_one(*op);
    return 0;
  }
  if (markdown) std::printf("# Operators\n\nMade by `fornax ops --markdown`.\n\n");
  for (const Op* op : op_table()) markdown ? print_markdown(*op) : print_one(*op);
  return 0;
}

void inspect_file(const std::string& path) {
  if (ends_with(path, ".npy")) {
    RawTensor t = read_npy(path);
    if (t.name.empty()) t.name = "array";
    return print_tensor(t);
  }
  if (ends_with(path, ".npz")) {
    NpzReader reader(path);
    for (const NpzEntry& e : reader.entries()) print_tensor(reader.read(e.name));
    return;
  }
  SafetensorsReader reader(path);
  for (const auto& [key, value] : reader.metadata())
    std::printf("%s = %s\n", key.c_str(), value.c_str());
  for (const SafetensorsEntry& e : reader.entries()) print_tensor(reader.read(e.name));
}

}  // namespace fornax::tool
