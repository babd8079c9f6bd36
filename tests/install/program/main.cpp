// A program outside the project, built against the installed package.
#include <fornax/fornax.h>

#include <cmath>
#include <cstdio>

int main() {
  fornax::manual_seed(3);
  auto x = fornax::randn({8, 3}).requires_grad_();
  auto w = fornax::ones({3, 2});
  auto loss = (x.matmul(w).relu() - 1).pow(2).mean();
  loss.backward();
  auto sum = (fornax::ones({2, 2}) + fornax::ones({2, 2})).sum().item<float>();
  std::printf("%g %g %g\n", loss.item<double>(), x.grad().abs().sum().item<double>(), sum);
  return sum == 8 && x.grad().sizes() == x.sizes() && std::isfinite(loss.item<double>()) ? 0 : 1;
}
