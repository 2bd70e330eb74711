// Memory of a Java program: records, maps, strings, arrays, and the virtual machine with its compiler.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

public class Load {
    record Row(int id, String name, double score, List<String> tags, boolean on) {}

    public static void main(String[] arguments) throws Exception {
        List<Row> rows = new ArrayList<>();
        Map<String, Row> index = new HashMap<>();
        for (int i = 0; i < 200000; i++) {
            Row row = new Row(i, "user" + (i * 7919L % 100003), i * 0.37, List.of("a" + i % 50, "b" + i % 13), i % 3 == 0);
            rows.add(row);
            index.put(row.name(), row);
        }
        Map<String, Integer> words = new TreeMap<>();
        try (var folders = Files.list(Path.of("/usr/share/doc"))) {
            for (Path folder : (Iterable<Path>) folders.sorted().limit(400)::iterator) {
                try {
                    for (String word : Files.readString(folder.resolve("copyright")).split("\\s+")) words.merge(word, 1, Integer::sum);
                } catch (Exception error) {
                    // A package without this file.
                }
            }
        }
        StringBuilder json = new StringBuilder();
        for (Row row : rows.subList(0, 60000)) {
            json.append("{\"id\":").append(row.id()).append(",\"name\":\"").append(row.name());
            json.append("\",\"score\":").append(row.score()).append("},\n");
        }
        String text = json.toString();
        List<String> parts = new ArrayList<>(Arrays.asList(text.split("\n")));
        double[][] matrix = new double[300][300];
        for (int i = 0; i < 300; i++) for (int j = 0; j < 300; j++) matrix[i][j] = i * j % 97 / 7.0;
        System.out.println("ready " + rows.size() + index.size() + words.size() + parts.size());
        Thread.sleep(600000);
        System.out.println(matrix[1][1] + text.length());
    }
}
