// The smallest program that computes: its start-up time is the library's.
#include <cstdio>

#include "fornax/fornax.h"

int main() {
  fornax::Tensor sum = fornax::ones({2}) + fornax::ones({2});
  std::printf("%g\n", sum[1].item<double>());
}
