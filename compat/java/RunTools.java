import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

/**
 * Runs Kafka's tools one after another in one JVM, so that a comparison of a hundred command lines takes seconds.
 * A line of stdin is a call: class, stdin and arguments in base64, separated by spaces ("-" is empty). The answer is a
 * line: exit code, stdout, stderr, in base64. System.exit is caught by the hook that Kafka has for its own tests.
 */
public class RunTools {
    static class Ended extends Error {
        final int code;
        Ended(int code) { super("exit", null, false, false); this.code = code; }
    }

    static Class<?> exitClass() throws Exception {
        try {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        }
    }

    static volatile Integer first;

    public static void main(String[] args) throws Exception {
        Class<?> exit = exitClass();
        for (Method m : exit.getMethods()) {
            String n = m.getName();
            if (n.equals("setExitProcedure") || n.equals("setHaltProcedure")) {
                Class<?> type = m.getParameterTypes()[0];
                m.invoke(null, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[]{type}, (p, f, a) -> {
                    if (f.getName().equals("execute")) {
                        if (first == null) first = (Integer) a[0];
                        throw new Ended((Integer) a[0]);
                    }
                    return null;
                }));
            }
            if (n.equals("setShutdownHookAdder")) {
                Class<?> type = m.getParameterTypes()[0];
                m.invoke(null, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[]{type}, (p, f, a) -> null));
            }
        }
        PrintStream answer = System.out, quiet = System.err;
        InputStream calls = System.in;
        BufferedReader in = new BufferedReader(new InputStreamReader(calls, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = Arrays.stream(line.split(" ")).map(RunTools::decode).toArray(String[]::new);
            ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
            PrintStream outs = new PrintStream(out, true, StandardCharsets.UTF_8), errs = new PrintStream(err, true, StandardCharsets.UTF_8);
            System.setOut(outs);
            System.setErr(errs);
            System.setIn(new ByteArrayInputStream(words[1].getBytes(StandardCharsets.UTF_8)));
            first = null;
            int code = 0;
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 2, words.length));
            } catch (InvocationTargetException e) {
                Throwable t = e.getCause();
                if (!(t instanceof Ended)) {
                    errs.print("Exception in thread \"main\" ");
                    t.printStackTrace(errs);
                    code = 1;
                }
            }
            if (first != null) code = first;
            System.setOut(answer);
            System.setErr(quiet);
            answer.println(code + " " + encode(out) + " " + encode(err));
            answer.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static String decode(String s) {
        return s.equals("-") ? "" : new String(Base64.getDecoder().decode(s), StandardCharsets.UTF_8);
    }

    static String encode(ByteArrayOutputStream b) {
        return b.size() == 0 ? "-" : Base64.getEncoder().encodeToString(b.toByteArray());
    }
}
