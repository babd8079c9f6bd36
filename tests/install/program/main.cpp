// A program outside the project, built against the installed package.
#include <fornax/base/dtype.h>

#include <cstdio>

int main() {
  const auto name = fornax::name_of(fornax::promote_types(fornax::kInt64, fornax::kFloat32));
  std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
  return name == "float32" ? 0 : 1;
}
