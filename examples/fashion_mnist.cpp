// Trains a convolutional network on Fashion-MNIST, saves a checkpoint, proves that it loads, draws
// the result. Ctrl-C saves and stops; --resume goes on as if nothing happened.
#include <fornax/fornax.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "fornax/data/plot.h"
#include "fornax/data/progress.h"
using namespace fornax;
using data::datasets::MNIST;

struct NetImpl : nn::Module {  // 1.23 million parameters
  Tensor forward(Tensor x) {
    x = max_pool2d(relu(conv1(x)), 2);  // [N, 1, 28, 28] -> [N, 32, 14, 14]
    x = max_pool2d(relu(conv2(x)), 2);  // -> [N, 64, 7, 7]
    x = relu(fc1(dropout(x.flatten(1))));
    return fc2(dropout(x));
  }
  nn::Conv2d conv1{register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1)))};
  nn::Conv2d conv2{register_module("conv2", nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1)))};
  nn::Linear fc1{register_module("fc1", nn::Linear(64 * 7 * 7, 384))};
  nn::Linear fc2{register_module("fc2", nn::Linear(384, 10))};
  nn::Dropout dropout{register_module("dropout", nn::Dropout(0.3))};
};
FORNAX_MODULE(Net);

static std::atomic<bool> stop_requested{false};

struct Evaluation {
  double accuracy = 0;
  std::vector<int64_t> confusion = std::vector<int64_t>(100, 0);  // [truth * 10 + prediction]
};

static Evaluation evaluate(Net& net, const MNIST& test) {
  NoGradGuard no_grad;
  net->eval();
  Evaluation e;
  int64_t correct = 0, n = test.images().size(0), count = 1000;  // the test set is a multiple
  for (int64_t from = 0; from < n; from += count) {
    Tensor predicted = net->forward(test.images().narrow(0, from, count)).argmax(1);
    Tensor truth = test.targets().narrow(0, from, count);
    for (int64_t i = 0; i < count; ++i) {
      int64_t t = truth[i].item<int64_t>(), p = predicted[i].item<int64_t>();
      ++e.confusion[size_t(t * 10 + p)];
      correct += t == p;
    }
  }
  net->train();
  e.accuracy = double(correct) / double(n);
  return e;
}

int main(int argc, char** argv) try {
  int64_t epochs = 6, first_epoch = 0, parameters = 0;
  bool resume = false;
  std::filesystem::path folder = "runs/fashion_mnist";
  for (int i = 1; i < argc; ++i) {
    bool more = i + 1 < argc;
    if (!std::strcmp(argv[i], "--resume"))
      resume = true;
    else if (!std::strcmp(argv[i], "--epochs") && more)
      epochs = std::atoll(argv[++i]);
    else if (!std::strcmp(argv[i], "--out") && more)
      folder = argv[++i];
    else
      return std::puts("usage: fashion_mnist [--epochs N] [--out FOLDER] [--resume]"), 2;
  }
  std::filesystem::create_directories(folder);
  std::string checkpoint_file = folder / "checkpoint.safetensors";
  std::signal(SIGINT, [](int) { stop_requested = true; });

  manual_seed(1);
  data::datasets::FashionMNIST train, test(MNIST::Mode::kTest);
  int64_t images = int64_t(*train.size());
  auto loader = data::make_data_loader(train.map(data::transforms::Stack<>()),
                                       data::DataLoaderOptions().batch_size(64).workers(1));
  Net net;
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-3));
  for (const Tensor& p : net->parameters()) parameters += p.numel();
  std::printf("Fashion-MNIST: %lld training images, %lld test images; %lld parameters\n",
              (long long)images, (long long)*test.size(), (long long)parameters);

  std::vector<double> losses;
  if (resume) {
    auto saved = serialize::Checkpoint::load(checkpoint_file);
    data::SamplerState position;
    saved.get("net", *net).get("adam", adam).get("random", default_generator());
    loader->load_state((saved.get("loader", position), position));
    first_epoch = saved.get_integer("epoch");
    losses = saved.get_reals("losses");
  }
  auto save = [&](int64_t epoch) {
    serialize::Checkpoint c;
    c.put("net", *net).put("adam", adam).put("random", default_generator());
    c.put("loader", loader->state()).put("epoch", epoch).put("losses", losses);
    c.save(checkpoint_file);
  };

  for (int64_t epoch = first_epoch; epoch < epochs; ++epoch) {
    double lr = epoch < 3 ? 1e-3 : epoch < 5 ? 4e-4 : 1e-4;
    for (auto& group : adam.param_groups()) group.options().set_lr(lr);
    ProgressBar bar(str("epoch ", epoch + 1, "/", epochs), images);
    double loss_sum = 0;
    int64_t seen = 0, correct = 0;
    for (auto& batch : *loader) {
      adam.zero_grad();
      Tensor output = net->forward(batch.data);
      Tensor loss = cross_entropy_loss(output, batch.target);
      loss.backward();
      adam.step();
      int64_t n = batch.data.size(0);
      losses.push_back(loss.item<double>());
      loss_sum += losses.back() * double(n);
      correct += output.argmax(1).eq(batch.target).sum().item<int64_t>();
      seen += n;
      bar.update(int64_t(loader->state().position), loss_sum / double(seen),
                 double(correct) / double(seen));
      if (!stop_requested) continue;
      save(epoch);
      std::printf("\nstopped; continue with --resume (%s)\n", checkpoint_file.c_str());
      return 0;
    }
    bar.finish();
    std::printf("epoch %lld: test accuracy %.2f %%\n", (long long)epoch + 1,
                100 * evaluate(net, test).accuracy);
    save(epoch + 1);
  }

  Net reloaded;
  serialize::Checkpoint::load(checkpoint_file).get("net", *reloaded);
  Evaluation trained = evaluate(net, test), again = evaluate(reloaded, test);
  FX_CHECK(trained.accuracy == again.accuracy, kInternal, "the reloaded network differs");
  std::printf("checkpoint %s reloaded: same test accuracy\n", checkpoint_file.c_str());
  std::vector<double> steps(losses.size());
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = double(i + 1);
  Series raw{"each step", steps, losses, false, true};
  Series smoothed{"smoothed", steps, smooth(losses, 0.98)};
  LineChart chart{"Training loss", "step", "cross-entropy", {raw, smoothed}};
  std::string picture = folder / "result.png";
  write_training_picture(picture, chart,
                         {"Confusion on the test images", train.classes(), again.confusion});
  std::printf("picture %s\ntest accuracy %.2f %%\n", picture.c_str(), 100 * again.accuracy);
} catch (const std::exception& e) {
  std::fprintf(stderr, "fashion_mnist: %s\n", e.what());
  return 1;
}
