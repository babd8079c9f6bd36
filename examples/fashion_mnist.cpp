// Trains a convolutional network on Fashion-MNIST, shows progress, saves a checkpoint, proves that
// it loads, and draws the result. Ctrl-C saves and stops; --resume goes on from there as if nothing
// had happened.
#include <fornax/fornax.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "fornax/data/plot.h"
#include "fornax/data/progress.h"

using namespace fornax;

// Two convolutions, two fully connected layers, 1.23 million parameters.
struct NetImpl : nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("dropout", dropout);
  }
  Tensor forward(Tensor x) {
    x = max_pool2d(relu(conv1(x)), 2);  // [N, 1, 28, 28] -> [N, 32, 14, 14]
    x = max_pool2d(relu(conv2(x)), 2);  // -> [N, 64, 7, 7]
    x = relu(fc1(dropout(x.flatten(1))));
    return fc2(dropout(x));
  }
  nn::Conv2d conv1{nn::Conv2dOptions(1, 32, 3).padding(1)},
      conv2{nn::Conv2dOptions(32, 64, 3).padding(1)};
  nn::Linear fc1{64 * 7 * 7, 384}, fc2{384, 10};
  nn::Dropout dropout{0.3};
};
FORNAX_MODULE(Net);

static int64_t parameter_count(const nn::Module& module) {
  int64_t n = 0;
  for (const Tensor& p : module.parameters()) n += p.numel();
  return n;
}

static std::atomic<bool> stop_requested{false};

struct Evaluation {
  double accuracy = 0;
  std::vector<int64_t> confusion = std::vector<int64_t>(100, 0);  // [truth * 10 + prediction]
};

static Evaluation evaluate(Net& net, const data::datasets::MNIST& test) {
  NoGradGuard no_grad;
  net->eval();
  Evaluation e;
  int64_t correct = 0, n = test.images().size(0), step = 1000;
  for (int64_t from = 0; from < n; from += step) {
    int64_t count = std::min(step, n - from);
    Tensor predicted = net->forward(test.images().narrow(0, from, count)).argmax(1);
    Tensor truth = test.targets().narrow(0, from, count).contiguous();
    for (int64_t i = 0; i < count; ++i) {
      int64_t t = truth.data_ptr<int64_t>()[i], p = predicted.data_ptr<int64_t>()[i];
      ++e.confusion[size_t(t * 10 + p)];
      correct += t == p;
    }
  }
  net->train();
  e.accuracy = double(correct) / double(n);
  return e;
}

int main(int argc, char** argv) try {
  int64_t epochs = 6;
  bool resume = false;
  std::filesystem::path folder = "runs/fashion_mnist";
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--resume"))
      resume = true;
    else if (!std::strcmp(argv[i], "--epochs") && i + 1 < argc)
      epochs = std::atoll(argv[++i]);
    else if (!std::strcmp(argv[i], "--out") && i + 1 < argc)
      folder = argv[++i];
    else
      return std::fprintf(stderr, "usage: fashion_mnist [--epochs N] [--out FOLDER] [--resume]\n"),
             2;
  }
  std::filesystem::create_directories(folder);
  std::string checkpoint_file = folder / "checkpoint.safetensors";
  std::signal(SIGINT, [](int) { stop_requested = true; });

  manual_seed(1);
  data::datasets::FashionMNIST train, test(data::datasets::MNIST::Mode::kTest);
  int64_t images = int64_t(*train.size());
  auto loader = data::make_data_loader(train.map(data::transforms::Stack<>()),
                                       data::DataLoaderOptions().batch_size(64).workers(1));
  Net net;
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-3));
  std::printf("Fashion-MNIST: %lld training images, %zu test images; network of %lld parameters\n",
              (long long)images, *test.size(), (long long)parameter_count(*net));

  int64_t first_epoch = 0;
  std::vector<double> losses;
  if (resume) {
    serialize::Checkpoint saved = serialize::Checkpoint::load(checkpoint_file);
    saved.get("net", *net).get("adam", adam).get("random", default_generator());
    data::SamplerState position;
    saved.get("loader", position);
    loader->load_state(position);
    first_epoch = saved.get_integer("epoch");
    losses = saved.get_reals("losses");
    std::printf("resumed from %s: epoch %lld, %zu steps done\n", checkpoint_file.c_str(),
                (long long)first_epoch + 1, losses.size());
  }
  auto save = [&](int64_t epoch) {
    serialize::Checkpoint c;
    c.put("net", *net)
        .put("adam", adam)
        .put("random", default_generator())
        .put("loader", loader->state());
    c.put("epoch", epoch).put("losses", losses).save(checkpoint_file);
  };

  Evaluation result;
  for (int64_t epoch = first_epoch; epoch < epochs; ++epoch) {
    for (auto& group : adam.param_groups())
      group.options().set_lr(epoch < epochs / 2 ? 1e-3 : epoch + 1 < epochs ? 4e-4 : 1e-4);
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
      if (stop_requested) {
        save(epoch);
        std::printf("\nstopped; continue with --resume (checkpoint: %s)\n",
                    checkpoint_file.c_str());
        return 0;
      }
    }
    bar.finish();
    result = evaluate(net, test);
    std::printf("epoch %lld: test accuracy %.2f %%\n", (long long)epoch + 1, 100 * result.accuracy);
    save(epoch + 1);
  }

  Net reloaded;
  serialize::Checkpoint::load(checkpoint_file).get("net", *reloaded);
  Evaluation again = evaluate(reloaded, test);
  if (first_epoch < epochs && again.accuracy != result.accuracy)
    throw std::runtime_error("the reloaded network gives another accuracy");
  std::printf("checkpoint %s reloaded: same test accuracy\n", checkpoint_file.c_str());

  std::vector<double> steps(losses.size());
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = double(i + 1);
  LineChart chart{
      "Training loss",
      "step",
      "cross-entropy",
      {{"each step", steps, losses, false, true}, {"smoothed", steps, smooth(losses, 0.98)}}};
  std::string picture = folder / "result.png";
  write_training_picture(picture, chart,
                         {"Confusion on the test images", train.classes(), again.confusion});
  std::printf("picture %s\ntest accuracy %.2f %%\n", picture.c_str(), 100 * again.accuracy);
} catch (const std::exception& e) {
  std::fprintf(stderr, "fashion_mnist: %s\n", e.what());
  return 1;
}
