#include "fornax/nn/options.h"

#include <ostream>

namespace fornax {

const char* name_of(Choice choice) {
  static constexpr const char* kNames[] = {"kNone",
                                           "kMean",
                                           "kSum",
                                           "kBatchMean",
                                           "kMax",
                                           "kLinear",
                                           "kConv1D",
                                           "kConv2D",
                                           "kConv3D",
                                           "kConvTranspose1D",
                                           "kConvTranspose2D",
                                           "kConvTranspose3D",
                                           "kSigmoid",
                                           "kTanh",
                                           "kReLU",
                                           "kGELU",
                                           "kSiLU",
                                           "kMish",
                                           "kLeakyReLU",
                                           "kSELU",
                                           "kFanIn",
                                           "kFanOut",
                                           "kConstant",
                                           "kReflect",
                                           "kReplicate",
                                           "kCircular",
                                           "kZeros",
                                           "kBorder",
                                           "kReflection",
                                           "kValid",
                                           "kSame",
                                           "kNearest",
                                           "kNearestExact",
                                           "kBilinear",
                                           "kBicubic",
                                           "kTrilinear",
                                           "kArea"};
  static_assert(std::size(kNames) == size_t(Choice::kArea) + 1);
  return kNames[size_t(choice)];
}

namespace {

template <class T>
std::ostream& print(std::ostream& stream, ArrayRef<T> values) {
  if (values.size() == 1) return stream << values[0];
  stream << "[";
  for (size_t i = 0; i < values.size(); ++i) stream << (i ? ", " : "") << values[i];
  return stream << "]";
}

}  // namespace

std::ostream& print_values(std::ostream& stream, IntArrayRef values) {
  return print(stream, values);
}
std::ostream& print_values(std::ostream& stream, ArrayRef<double> values) {
  return print(stream, values);
}

}  // namespace fornax
