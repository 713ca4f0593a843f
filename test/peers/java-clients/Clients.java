import com.fasterxml.jackson.databind.ObjectMapper;
import io.fabric8.kubernetes.api.model.KubernetesResourceList;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** fabric8's client and Java Operator SDK: java Clients fabric8|josdk URL. They print what came of each step of clients.test.ts. */
public class Clients {
  interface Step {
    void run() throws Exception;
  }

  public static class Spec {
    public String item;
    public Integer count;
  }

  public static class Status {
    public String phase;
    public Integer count;
  }

  @Group("example.com")
  @Version("v1")
  public static class Order extends CustomResource<Spec, Status> implements Namespaced {}

  /** Keeps its finalizer and its status by server-side apply: those are the defaults. */
  @ControllerConfiguration
  public static class Keeper implements Reconciler<Order>, Cleaner<Order> {
    @Override
    public UpdateControl<Order> reconcile(Order order, Context<Order> context) {
      seen.add(order.getMetadata().getName() + "=" + order.getSpec().item);
      Order answer = order("", order.getSpec().item);
      answer.setMetadata(
          new ObjectMetaBuilder().withName(order.getMetadata().getName()).withNamespace("default").build());
      answer.setSpec(null);
      answer.setStatus(new Status());
      answer.getStatus().phase = "kept " + order.getSpec().item;
      return UpdateControl.patchStatus(answer);
    }

    @Override
    public DeleteControl cleanup(Order order, Context<Order> context) {
      seen.add("gone " + order.getMetadata().getName());
      return DeleteControl.defaultDelete();
    }
  }

  static final Set<String> seen = ConcurrentHashMap.newKeySet();
  static KubernetesClient client;
  static MixedOperation<Order, KubernetesResourceList<Order>, Resource<Order>> orders;

  static Order order(String name, String item) {
    Order order = new Order();
    order.setMetadata(new ObjectMetaBuilder().withName(name).withNamespace("default").build());
    order.setSpec(new Spec());
    order.getSpec().item = item;
    return order;
  }

  static Resource<Order> at(String name) {
    return orders.inNamespace("default").withName(name);
  }

  static void expect(Object found, Object wanted) {
    if (!wanted.equals(found)) throw new AssertionError("expected " + wanted + ", found " + found);
  }

  static void until(java.util.function.BooleanSupplier condition) throws InterruptedException {
    while (!condition.getAsBoolean()) Thread.sleep(50);
  }

  static void say(Map<String, String> line) throws Exception {
    System.out.println(new ObjectMapper().writeValueAsString(line));
  }

  static void restart() throws Exception {
    say(Map.of("type", "restart"));
    System.in.read();
  }

  static Map<String, Step> fabric8() {
    Map<String, Step> steps = new LinkedHashMap<>();
    steps.put("discover", () -> expect(client.supports(Order.class), true));
    steps.put(
        "create",
        () -> {
          List<Order> made = new ArrayList<>();
          for (String name : List.of("a", "b", "c")) {
            made.add(client.resource(order(name, "tea")).create());
          }
          expect(made.get(0).getSpec().count, 1);
        });
    steps.put(
        "list",
        () -> {
          var first = orders.inNamespace("default").list(new ListOptionsBuilder().withLimit(2L).build());
          String token = first.getMetadata().getContinue();
          var rest = orders.inNamespace("default").list(new ListOptionsBuilder().withLimit(2L).withContinue(token).build());
          expect(first.getItems().size() + rest.getItems().size(), 3);
        });
    steps.put(
        "watch",
        () -> {
          CountDownLatch heard = new CountDownLatch(1);
          Watcher<Order> watcher =
              new Watcher<>() {
                @Override
                public void eventReceived(Action action, Order order) {
                  if ("coffee".equals(order.getSpec().item)) heard.countDown();
                }

                @Override
                public void onClose(WatcherException cause) {}
              };
          try (var watch = orders.inNamespace("default").watch(watcher)) {
            at("a").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"item\":\"coffee\"}}");
            expect(heard.await(10, TimeUnit.SECONDS), true);
          }
        });
    steps.put(
        "update",
        () -> {
          Order found = at("a").get();
          long before = found.getMetadata().getGeneration();
          found.getSpec().count = 2;
          expect(client.resource(found).update().getMetadata().getGeneration(), before + 1);
        });
    steps.put(
        "conflict",
        () -> {
          Order stale = at("a").get();
          at("a").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"count\":3}}");
          stale.getSpec().count = 5;
          try {
            client.resource(stale).lockResourceVersion().update();
            throw new AssertionError("an old version was accepted");
          } catch (KubernetesClientException error) {
            expect(error.getCode(), 409);
          }
        });
    steps.put(
        "patch",
        () -> {
          String change = "[{\"op\":\"replace\",\"path\":\"/spec/count\",\"value\":4}]";
          expect(at("a").patch(PatchContext.of(PatchType.JSON), change).getSpec().count, 4);
        });
    steps.put(
        "apply",
        () -> {
          Order applied = client.resource(order("d", "milk")).fieldManager("java").serverSideApply();
          expect(applied.getMetadata().getManagedFields().get(0).getOperation(), "Apply");
        });
    steps.put(
        "status",
        () -> {
          Order found = at("a").get();
          found.setStatus(new Status());
          found.getStatus().phase = "done";
          found.getSpec().count = 9;
          Order updated = client.resource(found).updateStatus();
          expect(updated.getStatus().phase, "done");
          expect(updated.getSpec().count, 4);
        });
    steps.put(
        "scale",
        () -> {
          at("a").scale(7);
          expect(at("a").get().getSpec().count, 7);
        });
    steps.put(
        "delete",
        () -> {
          at("b").delete();
          expect(at("b").get() == null, true);
        });
    steps.put(
        "controller",
        () -> {
          orders
              .inNamespace("default")
              .inform(
                  new ResourceEventHandler<>() {
                    @Override
                    public void onAdd(Order order) {
                      seen.add(order.getMetadata().getName());
                    }

                    @Override
                    public void onUpdate(Order before, Order order) {}

                    @Override
                    public void onDelete(Order order, boolean isUnknown) {}
                  });
          until(() -> seen.contains("a"));
          restart();
          client.resource(order("e", "water")).create();
          until(() -> seen.contains("e"));
        });
    return steps;
  }

  static boolean isKept(String item) {
    Status status = at("a").get().getStatus();
    return status != null && status.phase.equals("kept " + item);
  }

  static Map<String, Step> josdk() {
    Map<String, Step> steps = new LinkedHashMap<>();
    steps.put(
        "discover",
        () -> {
          Operator operator = new Operator(config -> config.withKubernetesClient(client).withCloseClientOnStop(false));
          operator.register(new Keeper());
          operator.start();
        });
    steps.put(
        "create",
        () -> {
          client.resource(order("a", "tea")).create();
          until(() -> seen.contains("a=tea"));
        });
    steps.put("status", () -> until(() -> isKept("tea")));
    steps.put(
        "apply",
        () -> {
          var managers = at("a").get().getMetadata().getManagedFields();
          expect(managers.stream().anyMatch(each -> each.getOperation().equals("Apply")), true);
          expect(at("a").get().getMetadata().getFinalizers().size(), 1);
        });
    steps.put(
        "update",
        () -> {
          at("a").edit(
              found -> {
                found.getSpec().item = "coffee";
                return found;
              });
          until(() -> seen.contains("a=coffee"));
          // While the operator writes, 5.3.2 drops changes that come before its own (java-operator-sdk#3398): it would never
          // hear of a deletion.
          until(() -> isKept("coffee"));
        });
    steps.put(
        "delete",
        () -> {
          at("a").delete();
          until(() -> seen.contains("gone a"));
          until(() -> at("a").get() == null);
        });
    steps.put(
        "controller",
        () -> {
          restart();
          client.resource(order("e", "water")).create();
          until(() -> seen.contains("e=water"));
        });
    return steps;
  }

  public static void main(String[] args) throws Exception {
    var config = new ConfigBuilder().withMasterUrl(args[1]).withNamespace("default").build();
    client = new KubernetesClientBuilder().withConfig(config).build();
    orders = client.resources(Order.class);
    for (var step : (args[0].equals("josdk") ? josdk() : fabric8()).entrySet()) {
      try {
        step.getValue().run();
        say(Map.of("type", "passed", "verb", step.getKey()));
      } catch (Throwable error) {
        error.printStackTrace();
        say(Map.of("type", "failed", "verb", step.getKey(), "message", String.valueOf(error)));
      }
    }
    System.exit(0);
  }
}
