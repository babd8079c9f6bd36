// Macros for modules without parameters; whoever includes this undefines them. Included more than
// once on purpose.
#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"

// A module without parameters: options, forward, text.
#define FX_ACTIVATION(Name, Options, ...)                    \
  class Name##Impl : public Cloneable<Name##Impl> {          \
   public:                                                   \
    explicit Name##Impl(const Options& options __VA_ARGS__); \
    void reset() override {}                                 \
    void pretty_print(std::ostream& stream) const override;  \
    Tensor forward(const Tensor& input);                     \
    Options options;                                         \
  };                                                         \
  FORNAX_MODULE(Name)
#define FX_PLAIN_ACTIVATION(Name)                           \
  class Name##Impl : public Cloneable<Name##Impl> {         \
   public:                                                  \
    void reset() override {}                                \
    void pretty_print(std::ostream& stream) const override; \
    Tensor forward(const Tensor& input);                    \
  };                                                        \
  FORNAX_MODULE(Name)
